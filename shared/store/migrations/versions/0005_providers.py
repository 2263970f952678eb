"""Money that is shared; models that stand in for others; windows that were learned. The files say what each holds."""

from shared.store.migrations import run_file

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

PARTS = ("money", "fallback", "windows")


def upgrade() -> None:
    for part in PARTS:
        run_file(f"0005_{part}.sql")


def downgrade() -> None:
    for part in reversed(PARTS):
        run_file(f"0005_{part}_down.sql")

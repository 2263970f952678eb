"""Money that is shared; windows that were learned. The files say what each part holds."""

from shared.store.migrations import run_file

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

PARTS = ("money", "windows")


def upgrade() -> None:
    for part in PARTS:
        run_file(f"0005_{part}.sql")


def downgrade() -> None:
    for part in reversed(PARTS):
        run_file(f"0005_{part}_down.sql")

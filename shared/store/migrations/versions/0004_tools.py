"""Tools that can be trusted on other people's machines: what runs in the background, on which worker."""

from shared.store.migrations import run_file

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

PARTS = ("sandbox", "gate")


def upgrade() -> None:
    for part in PARTS:
        run_file(f"0004_{part}.sql")


def downgrade() -> None:
    for part in reversed(PARTS):
        run_file(f"0004_{part}_down.sql")

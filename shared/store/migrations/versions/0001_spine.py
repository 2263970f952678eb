"""The spine: tables, the fence, the law of turns."""

from shared.store.migrations import run_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_file("0001_conversation.sql")
    run_file("0001_work.sql")
    run_file("0001_fence.sql")


def downgrade() -> None:
    run_file("0001_down.sql")

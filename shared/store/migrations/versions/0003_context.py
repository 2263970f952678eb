"""The conversation as the model sees it: what reductions measure, recall, memory, what was taken back, what is kept."""

from shared.store.migrations import run_file

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

PARTS = ("reduction", "compaction", "recall", "rewind", "memory", "spill")


def upgrade() -> None:
    for part in PARTS:
        run_file(f"0003_{part}.sql")


def downgrade() -> None:
    for part in reversed(PARTS):
        run_file(f"0003_{part}_down.sql")

"""Turns that wait: approvals bound to a run, questions to a person, children, and what an admin has stopped."""

from shared.store.migrations import run_file

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_file("0002_waiting.sql")
    run_file("0002_admission.sql")


def downgrade() -> None:
    run_file("0002_admission_down.sql")
    run_file("0002_down.sql")

"""Which tools a session is to get. Pure: the session's own list where it has one, else by its kind; less what this
host lacks. What it has from then on is what its prompt says (workers/snapshot.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.values import SessionKind
from workers.tools import registry

DELEGATE = "delegate_task"
ASK = "clarify"
MEMORY = "memory"
RECALL = "session_search"
SCHEDULE = "schedule_job"
SEND = "send_message"
BLOCKED = frozenset({DELEGATE, ASK, MEMORY, RECALL, SCHEDULE, SEND})
"""What a child never has: it delegates only as an orchestrator below the depth that the settings allow, it asks
nobody, it changes nothing that others will know later, of other conversations it knows what it was told, and it reaches
nobody but its parent."""


def of_session(kind: SessionKind, listed: Sequence[str] | None, spawn_depth: int) -> tuple[str, ...]:
    """Sorted names. A job has nobody who could answer at night, so it asks nobody, and it schedules nothing; with a
    depth of 0 nobody delegates."""
    if listed is not None:
        return tuple(sorted(set(listed) & set(registry.TOOLS)))
    without = frozenset[str]() if kind is SessionKind.CHAT else frozenset({ASK, SCHEDULE})
    if spawn_depth == 0:
        without |= {DELEGATE}
    return tuple(name for name in sorted(registry.TOOLS) if name not in without)


def of_child(parents: Iterable[str], depth: int, spawn_depth: int) -> tuple[str, ...]:
    """The parent's tools less what a child may not have; above the last level it may delegate in turn."""
    blocked = BLOCKED - {DELEGATE} if depth < spawn_depth else BLOCKED
    return tuple(sorted(name for name in parents if name not in blocked))

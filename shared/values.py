"""The closed sets: one word a thing, the same in Python, SQL, HTTP and on the command line."""

from __future__ import annotations

from enum import StrEnum


class TurnStatus(StrEnum):
    QUEUED = "queued"  # → running by claim, → cancelled by api
    RUNNING = "running"  # → done | failed | cancelled | parked | queued, each by the holder's fence or the sweep
    PARKED = "parked"  # → queued by wake, → cancelled by api, → failed by sweep
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({TurnStatus.DONE, TurnStatus.FAILED, TurnStatus.CANCELLED})


class TurnClass(StrEnum):
    INTERACTIVE = "interactive"
    CHILD = "child"
    JOB = "job"
    CHORE = "chore"


QUEUES: dict[TurnClass, str] = {
    TurnClass.INTERACTIVE: "interactive",
    TurnClass.CHILD: "children",
    TurnClass.JOB: "jobs",
    TurnClass.CHORE: "chores",
}
"""Queue of each class. A housekeeping turn (chore) is claimed by workers, who also listen on `jobs`; `chores` is the
scheduler's."""

AGING: dict[TurnClass, int] = {
    TurnClass.INTERACTIVE: 0,
    TurnClass.CHILD: 60,
    TurnClass.JOB: 120,
    TurnClass.CHORE: 180,
}
"""Seconds by which a class stands behind `interactive` in the admission key (hot-path.md: aging is free and
indexable)."""


class ParkReason(StrEnum):
    APPROVAL = "approval"
    CLARIFY = "clarify"
    CHILDREN = "children"
    BACKOFF = "backoff"
    MONEY = "money"
    TIME = "time"


class Purpose(StrEnum):
    MAIN = "main"
    SUMMARY = "summary"
    FINAL = "final"
    PING = "ping"
    TITLE = "title"
    PROBE = "probe"  # asks a model that was out whether it answers again: nothing of the conversation goes out


class CallStatus(StrEnum):
    RESERVED = "reserved"  # inserted before the request goes out
    SETTLED = "settled"  # the bill is known
    FAILED = "failed"  # the provider answered an error
    CUT = "cut"  # stopped by us; its output is assumed
    LOST = "lost"  # its worker is gone; its reservation is booked as spent


class RunStatus(StrEnum):
    ASKED = "asked"
    APPROVED = "approved"
    DENIED = "denied"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class Repeat(StrEnum):
    """What may be done with a run that had `started` when its worker went away."""

    REPEATABLE = "repeatable"  # a read: run it again
    KEYED = "keyed"  # takes an idempotency key: run it again under the same key
    CHECKABLE = "checkable"  # a named read tells whether it happened
    ONCE = "once"  # never again: the model is told that the outcome is unknown


class Role(StrEnum):
    VIEWER = "viewer"
    MEMBER = "member"
    APPROVER = "approver"
    ADMIN = "admin"


ROLE_RANK: dict[Role, int] = {Role.VIEWER: 0, Role.MEMBER: 1, Role.APPROVER: 2, Role.ADMIN: 3}


class PrincipalKind(StrEnum):
    PERSON = "person"
    JOB = "job"
    SERVICE = "service"


class Audience(StrEnum):
    PRIVATE = "private"  # its owner
    TEAM = "team"  # everyone with a token
    PEOPLE = "people"  # those named in session_people


class SessionKind(StrEnum):
    CHAT = "chat"
    JOB = "job"
    CHILD = "child"


class Refund(StrEnum):
    """Why a step does not count against the iteration budget."""

    REDUCTION = "reduction"
    WINDOW = "window"
    STEER_CUT = "steer_cut"
    FAILOVER = "failover"
    CODE_ONLY = "code_only"
    LOST_CALL = "lost_call"


class InboxKind(StrEnum):
    INPUT = "input"  # the first input of a turn
    STEER = "steer"
    DELIVERY = "delivery"
    CHILD = "child"  # the report of a child in the background; its row names the child's turn
    REWIND = "rewind"  # this and the next two are no words: asked of the transcript, carried out by their own turn
    RESTORE = "restore"
    COMPACT = "compact"


ASKED_OF_TRANSCRIPT = frozenset({InboxKind.REWIND, InboxKind.RESTORE, InboxKind.COMPACT})


class OnBusy(StrEnum):
    QUEUE = "queue"
    STEER = "steer"
    REJECT = "reject"


class EditKind(StrEnum):
    SUMMARY = "summary"
    STUB = "stub"
    REWIND = "rewind"
    RESTORE = "restore"
    PREFIX = "prefix"


class EventKind(StrEnum):
    """The server-sent events of a turn (contract.md)."""

    TURN_QUEUED = "turn.queued"
    TURN_STARTED = "turn.started"
    TURN_STATUS = "turn.status"
    STEP_STARTED = "step.started"
    TEXT_DELTA = "text.delta"
    THINKING_STARTED = "thinking.started"
    REASONING_DELTA = "reasoning.delta"
    THINKING_STOPPED = "thinking.stopped"
    TOOL_PREPARING = "tool.preparing"
    TOOL_CALLED = "tool.called"
    TOOL_FINISHED = "tool.finished"
    STEP_FINISHED = "step.finished"
    STEP_RESTARTED = "step.restarted"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    CLARIFY_REQUESTED = "clarify.requested"
    TURN_PARKED = "turn.parked"
    TURN_WOKEN = "turn.woken"
    TURN_STEERED = "turn.steered"
    TURN_STALLED = "turn.stalled"
    CONTEXT_REDUCED = "context.reduced"
    CONTEXT_EDITED = "context.edited"
    BUDGET_WARNING = "budget.warning"
    CHILD_STARTED = "child.started"
    CHILD_FINISHED = "child.finished"
    MODEL_SWITCHED = "model.switched"
    REPAIRED = "transcript.repaired"
    PREFIX_BROKEN = "prefix.broken"
    LEFT_OUT = "prompt.left_out"
    SNAPSHOT = "snapshot"
    TURN_FINISHED = "turn.finished"

"""T1: what the model answered, its bill and its tool runs, in one statement; and the end of the turn in the same
transaction.

Lock order: the session row, the turn row. A COMMIT whose reply is lost is not sent again: the call's status, read
under the session's lock, tells whether it landed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from typing import Any

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.life import Life
from shared.store import children
from shared.store.arrays import array
from shared.store.pool import Connection
from shared.store.statements import one, run, turn_end, waiting
from shared.store.statements import step as statements
from shared.text import bounded
from shared.values import CallStatus, Purpose, Refund, Repeat, RunStatus, TurnStatus
from workers import fence, gathering, grants, reserving, telling
from workers.compaction import breaker
from workers.grants import Grant
from workers.held import Held
from workers.outgoing import returned
from workers.pause import Point
from workers.ports import Ports
from workers.providers.replies import ToolCall, Usage
from workers.reduction import look, meters, state
from workers.reduction.state import Context
from workers.reserving import Planned
from workers.tools import registry
from workers.tools.tool import RUN_S


@dataclass(frozen=True, slots=True)
class Run:
    """A tool run as asked for in T1. `grant` is there once it is told as `started` by this holder; `unknown` where an
    earlier holder may have run it already: what is told of it should it not come to its end now."""

    step: int
    ordinal: int
    call: ToolCall
    repeat: Repeat
    status: RunStatus
    grant: Grant | None = None
    unknown: str | None = None

    @property
    def run_s(self) -> float:
        """How long it may take; `may_run_until` tells others until when it may still happen."""
        tool = registry.TOOLS.get(self.call.name)
        return RUN_S if tool is None else tool.run_s


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends, and what its person reads of it."""

    status: TurnStatus
    answer: str | None = None
    error_code: str | None = None
    error_text: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to, as it will be recorded. `spent` is what is booked against the caps."""

    status: CallStatus
    spent: Decimal
    usage: Usage | None = None
    cost: Decimal | None = None
    assumed: bool = False
    unknown: bool = False
    rate_source: str | None = None
    content: str | None = None
    reasoning: str | None = None
    cut: bool = False
    step_done: bool = False
    refund: Refund | None = None
    error_code: str | None = None
    error_text: str | None = None
    request_id: str | None = None
    stop_reason: str | None = None
    first_token_ms: float | None = None
    runs: Sequence[Run] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Recorded:
    """`ended` is False where the turn was to end and something had arrived in its inbox: it goes on."""

    cancel_requested: bool
    ended: bool


def runs_of(life: Life, calls: Sequence[ToolCall], step: int, held_back: Callable[[ToolCall], bool]) -> tuple[Run, ...]:
    """The runs of a batch. Where all may be repeated they are `started` together; else only the first one is.

    A run that is `held_back` needs somebody else first, and so begins by itself nowhere.
    """
    calls = [replace(call, name=registry.current(call.name)) for call in calls]
    repeats = [registry.TOOLS[c.name].repeat if c.name in registry.TOOLS else Repeat.REPEATABLE for c in calls]
    back = [held_back(call) for call in calls]
    together = not any(back) and all(repeat is Repeat.REPEATABLE for repeat in repeats)
    runs = [
        Run(step, at + 1, call, repeat, RunStatus.STARTED if together or (at == 0 and not back[0]) else RunStatus.ASKED)
        for at, (call, repeat) in enumerate(zip(calls, repeats, strict=True))
    ]
    return tuple(
        replace(run, grant=grants.given(life, run.run_s)) if run.status is RunStatus.STARTED else run for run in runs
    )


def record(ports: Ports, held: Held, planned: Planned, outcome: Outcome, ending: Ending | None = None) -> Recorded:
    """Commit T1, and the end of the turn with it. Raises LeaseLost."""
    context, over = _judged(ports, held, planned, outcome)
    values = _values(held, planned, outcome, context, over=over)
    written: list[DictRow] = []

    def write(connection: Connection) -> DictRow:
        row = one(connection, statements.RECORD, values)
        if row is None:
            raise LeaseLost
        written.append(row)
        ports.pauses.at(Point.RECORDING)
        return row

    def work(connection: Connection) -> Recorded:
        written.clear()
        if ending is None and not ports.pauses.inside(Point.RECORDING):  # one statement is a transaction
            return Recorded(write(connection)["cancel_requested_at"] is not None, ended=False)
        with connection.transaction():
            if ending is not None:
                _lock_parent(connection, held)
            row = write(connection)
            ended = ending is not None and _finish(connection, ports, held, ending)
        return Recorded(row["cancel_requested_at"] is not None, ended)

    def recover(connection: Connection) -> Recorded | None:
        written.clear()
        now = fence.standing(connection, held)
        row = one(connection, statements.CALL_STATUS, {"call": planned.id})
        if row is None:
            raise LeaseLost
        landed = row["status"] == outcome.status  # a call that others booked as lost is none of ours
        if now == held.claim.fence:
            return Recorded(False, ended=False) if landed else None
        turn = one(connection, turn_end.LOCK_TURN, {"turn": held.claim.turn})
        if landed and ending is not None and turn is not None and turn["status"] == ending.status:
            return Recorded(False, ended=True)  # the fence rose because our own end landed
        raise LeaseLost

    recorded = ports.database.write(work, recover=recover)
    _mirror(held, planned, outcome, context, written, over=over)
    if not written:
        held.context = ports.database.read(lambda c: state.load(c, held.claim.session))
    telling.call_ended(ports.telemetry, held, planned, outcome)
    return recorded


def end(ports: Ports, held: Held, ending: Ending) -> None:
    """End a turn that has no call in flight; what arrived meanwhile is folded first, so that nobody's words are lost.
    Raises LeaseLost."""
    while not finished(ports, held, ending):
        reserving.commit_rows(ports, held, gathering.gather(held, (), gathering.waiting(ports, held)))


def finished(ports: Ports, held: Held, ending: Ending) -> bool:
    """End a turn that has no call in flight; False where something waits in its inbox. Raises LeaseLost."""

    def work(connection: Connection) -> bool:
        with connection.transaction():
            _lock_parent(connection, held)
            own = {"session": held.claim.session, "fence": held.claim.fence}
            if one(connection, turn_end.LOCK_OWN, own) is None:
                raise LeaseLost
            return _finish(connection, ports, held, ending)

    def recover(connection: Connection) -> bool | None:
        return True if ended_by_us(connection, held, ending.status) else None

    return ports.database.write(work, recover=recover)


def _finish(connection: Connection, ports: Ports, held: Held, ending: Ending) -> bool:
    """Lock the turn, then look into the inbox in a later statement: a steer that got there first is not lost."""
    one(connection, turn_end.LOCK_TURN, {"turn": held.claim.turn})
    ports.pauses.at(Point.FINISHING)
    values = {
        "session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence, "status": ending.status,
        "answer": ending.answer, "error_code": ending.error_code, "error_text": ending.error_text,
    }  # fmt: skip
    if one(connection, turn_end.FINISH, values) is not None:
        if ending.status is not TurnStatus.DONE:
            run(connection, waiting.VOID_APPROVALS, values)
            run(connection, waiting.VOID_QUESTIONS, values)
        if held.claim.parent is not None:
            held.woken = children.over(connection, held.claim.turn, held.claim.parent)
            if held.woken.turn_class is not None:
                ports.pauses.at(Point.WAKING)
        return True
    fence.confirm(connection, held)
    return False


def _lock_parent(connection: Connection, held: Held) -> None:
    """Whoever ends a child locks the parent's turn before its own session."""
    if held.claim.parent is not None:
        children.lock_parent(connection, held.claim.turn)


def park(ports: Ports, held: Held, reason: str, wait_s: float, *, out: bool = False) -> None:
    """Give the slot back and sleep until a time; `out`: because no model takes its call. Raises LeaseLost."""
    values = {
        "session": held.claim.session,
        "turn": held.claim.turn,
        "fence": held.claim.fence,
        "reason": reason,
        "wait_s": wait_s,
        "out": out,
    }

    def work(connection: Connection) -> bool:
        with connection.transaction():
            if one(connection, turn_end.LOCK_OWN, values) is None:
                raise LeaseLost
            ports.pauses.at(Point.PARKING)
            if one(connection, turn_end.PARK, values) is None:
                raise LeaseLost
        return True

    ports.database.write(work, recover=lambda c: True if ended_by_us(c, held, TurnStatus.PARKED) else None)


def requeue(ports: Ports, held: Held) -> None:
    """Draining: hand the turn back as it is. Raises LeaseLost."""
    values = {"session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence}

    def work(connection: Connection) -> bool:
        if one(connection, turn_end.REQUEUE, values) is None:
            raise LeaseLost
        return True

    ports.database.write(work, recover=lambda c: True if ended_by_us(c, held, TurnStatus.QUEUED) else None)


def ended_by_us(connection: Connection, held: Held, status: TurnStatus) -> bool:
    """Whether our own last statement landed. False: it did not, and the fence is still ours. Raises LeaseLost."""
    now = fence.standing(connection, held)
    if now == held.claim.fence:
        return False
    turn = one(connection, turn_end.LOCK_TURN, {"turn": held.claim.turn})
    if now == held.claim.fence + 1 and turn is not None and turn["status"] == status:
        return True
    raise LeaseLost


def _judged(ports: Ports, held: Held, planned: Planned, outcome: Outcome) -> tuple[Context, bool]:
    """The session's context after this call, and whether its bill was at the threshold or over it."""
    if outcome.status is CallStatus.SETTLED and planned.purpose is Purpose.PING:
        return replace(held.context, warm_pings=held.context.warm_pings + 1), False
    if outcome.status is not CallStatus.SETTLED or planned.purpose is not Purpose.MAIN:
        return held.context, False
    billed = None if outcome.usage is None else outcome.usage.prompt
    room = look.threshold(ports.settings, held)
    warm = held.chain is not None and not meters.gap(held.context, held.now()).cold
    context = breaker.judge(meters.answered(held.context, outcome.usage, warm=warm), billed, room)
    return context, billed is not None and billed >= room


def _values(held: Held, planned: Planned, outcome: Outcome, context: Context, *, over: bool) -> dict[str, Any]:
    usage = outcome.usage
    settled = outcome.status is CallStatus.SETTLED
    chain = settled and planned.purpose is Purpose.MAIN
    return {
        "session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence, "holder": held.claim.holder,
        "call": planned.id, "step": planned.step, "status": outcome.status, "spent": outcome.spent,
        "unknown": outcome.unknown, "anchor": chain and usage is not None and not over, "clear": over,
        "billed": usage.prompt if usage else None,
        "chain": chain, "ping": settled and planned.purpose is Purpose.PING,
        "most_pings": meters.worth_pinging(context, look.relative(held, planned.prompt_tokens), planned.prompt_tokens)
        if chain else 0,
        "end_message": planned.end_message, "warm_s": held.context.ttl.seconds,
        "input": usage.input if usage else None, "output": usage.output if usage else None,
        "cache_read": usage.cache_read if usage else None,
        "cache_write_5m": usage.cache_write_5m if usage else None,
        "cache_write_1h": usage.cache_write_1h if usage else None,
        "reasoning": usage.reasoning if usage else None, "cost": outcome.cost, "assumed": outcome.assumed,
        "rate_source": outcome.rate_source, "refund": outcome.refund, "error_code": outcome.error_code,
        "error_text": bounded(outcome.error_text, 2000) if outcome.error_text else None,
        "request_id": outcome.request_id, "stop_reason": outcome.stop_reason,
        "first_token_ms": None if outcome.first_token_ms is None else int(outcome.first_token_ms),
        "step_done": int(outcome.step_done), "content": outcome.content, "blocks": outcome.reasoning,
        "cut": outcome.cut, "r_may_run_s": array(r.run_s for r in outcome.runs),
        "r_ordinal": array(r.ordinal for r in outcome.runs), "r_call_id": array(r.call.id for r in outcome.runs),
        "r_tool": array(r.call.name for r in outcome.runs),
        "r_arguments": array(r.call.arguments_text for r in outcome.runs),
        "r_digest": array(run_digest(r.call) for r in outcome.runs), "r_repeat": array(r.repeat for r in outcome.runs),
        "r_status": array(r.status for r in outcome.runs), **context.params(),
    }  # fmt: skip


def run_digest(call: ToolCall) -> str:
    """What an approval is bound to: this tool with exactly these arguments."""
    return sha256(f"{call.name}\n{call.arguments_text}".encode("utf-8", "surrogatepass")).hexdigest()


def _mirror(
    held: Held, planned: Planned, outcome: Outcome, context: Context, written: Sequence[DictRow], *, over: bool
) -> None:
    """Memory follows the rows that were just committed."""
    money = held.money
    money.turn_reserved -= planned.reserve
    money.session_reserved -= planned.reserve
    money.turn_spent += outcome.spent
    money.session_spent += outcome.spent
    if outcome.refund is not None:
        held.refunds += 1
    if outcome.status is CallStatus.SETTLED:
        held.out_s = None
    if outcome.status is CallStatus.SETTLED and planned.purpose is Purpose.MAIN:
        held.spoke = f"{held.claim.provider}:{held.claim.model}"
        held.pinned = planned.end_message if planned.end_message is not None else held.pinned
        held.region_end = None
        held.chain = None if held.request is None else (held.request.chain.count, held.request.chain.digest)
        if outcome.usage is not None:
            held.baseline = None if over else (planned.estimate, outcome.usage.prompt)
        held.carried = False
    if written:
        held.unread.extend(returned(written))
        held.told(written[0]["now"])
        held.context = replace(
            context, called_at=written[0]["called_at"], prefix_warm_until=written[0]["prefix_warm_until"]
        )
    else:
        held.forget()
    if outcome.step_done:
        held.step += 1
        held.next_ordinal = 1 + len(outcome.runs)
        held.failed_tries = 0
        held.overflows = 0
        held.spilled = 0
        held.failed_purpose = None

"""T2 and the first reservation of a turn: what was gathered becomes messages, and the next call is reserved, in one
statement.

The body that goes out is projected from the rows as they stand after the commit; that its digest is the reserved one is
checked each time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import structlog

from shared import shared_prefix
from shared.errors import NightshiftError
from shared.ids import uuid7
from shared.request import blocks, cache_plan, digest, estimate, projection, repair
from shared.request.assembled import Request
from shared.request.cache_plan import PlanState
from shared.request.digest import Chain
from shared.request.marked import MarkedRequest
from shared.request.projection import MessageRow
from shared.request.repair import Repair
from shared.store import transcript
from shared.store.pool import Connection
from shared.store.statements import every, one
from shared.store.statements import step as statements
from shared.values import EventKind, Purpose
from workers import budget, caps, drawing, fence, prefixing
from workers.emit import emit
from workers.gathering import Gathered, has_result, with_warning
from workers.held import Held
from workers.outgoing import fold_params, kept_params, message_params, returned, run_params
from workers.ports import Ports
from workers.prompt import title, warnings
from workers.providers import params, prices

PROVISIONAL = 2**61
COLD_EVERY = 64
"""One call in so many, and each claim's first, is projected from rows read afresh: a check of memory against itself
is true by construction. Memory grows only by rows that a write gave back, so what is left to catch is rare; the read
grows with the session (12 ms of CPU at 1,000 messages), and at one in 16 it was an eighth of a long session's step."""
_ROWLESS = (Purpose.TITLE, Purpose.PROBE)
log = structlog.get_logger("reserving")


@dataclass(frozen=True, slots=True)
class Planned:
    """A reserved call, ready to go out."""

    id: UUID
    step: int
    purpose: Purpose
    body: bytes
    estimate: int
    reserve: Decimal
    end_message: int | None
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no call could be reserved: the turn ends with this code and sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Short:
    """A cap has no room for the next call, which may cost `needs` dollars; nothing was written."""

    scope: str
    message: str
    needs: Decimal


@dataclass(frozen=True, slots=True)
class Arrived:
    """Nothing was written, for the rows have what memory had not: something waits in the inbox, or a cap was changed.
    Look again."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """It is written. The messages as the database gave them back, in order; None where the reply was lost."""

    messages: list[MessageRow] | None
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    gathered: Gathered
    rows: list[MessageRow]
    """What `marked` was made of besides the base: rows that stand, and rows under ids that are not theirs yet."""
    marked: MarkedRequest
    estimate: int
    projected: int
    max_tokens: int
    reserve: Decimal
    warned: dict[str, int]
    repairs: tuple[Repair, ...]


def commit_rows(ports: Ports, held: Held, gathered: Gathered) -> None:
    """T2 without a call: what was gathered stands in the transcript. Nothing happens where nothing was gathered."""
    if gathered.empty:
        return
    written = _write(ports, held, gathered, _no_call(), Decimal(0), {}, count=0)
    _advance(held, gathered)
    _tell_steered(ports, held, gathered)
    if isinstance(written, _Rows) and written.messages is not None:
        held.unread.extend(written.messages)
    else:
        held.forget()


def reserve(
    ports: Ports, held: Held, gathered: Gathered, purpose: Purpose = Purpose.MAIN, *, again: bool = False,
    tail: str | None = None,
) -> Planned | Refusal | Short | Arrived:  # fmt: skip
    """Reserve the next call. `again` marks a repeat of a call that failed, which is no new step; `tail` is the array of
    blocks that a `final` call ends with, which no row holds."""
    base = _base(ports, held, purpose)
    draft = _draft(ports, held, base, gathered, purpose, tail)
    if not isinstance(draft, _Draft):
        return draft
    call = uuid7()
    fields = _call_fields(ports, held, call, purpose, draft, tail)
    counted = 1 if purpose is Purpose.MAIN and not again else 0
    written = _write(
        ports, held, draft.gathered, fields, draft.reserve, draft.warned, count=counted, alone=not gathered.looked
    )
    if not isinstance(written, _Rows):
        return written
    held.steps += counted
    held.money.turn_reserved += draft.reserve
    held.money.session_reserved += draft.reserve
    held.money_late = False
    held.warned.update(draft.warned)
    _advance(held, draft.gathered)
    marked = _from_rows(ports, held, base, purpose, draft, written, fields["c_marks"], tail)
    _tell(ports, held, draft)
    return Planned(
        call, held.step + 1, purpose, marked.body(fields["c_params"]), draft.estimate, draft.reserve,
        marked.end_message_id, draft.projected,
    )  # fmt: skip


def _base(ports: Ports, held: Held, purpose: Purpose) -> Request:
    if purpose in _ROWLESS:
        return prefixing.floor(ports, held) if purpose is Purpose.PROBE else projection.project(title.PREFIX, ())
    if _beside(held, purpose):
        return prefixing.cold_request(ports, held, final=True)
    request = standing(ports, held)
    held.calls_made += 1
    return request


def _beside(held: Held, purpose: Purpose) -> bool:
    """Whether the call is none of the chain: without tools and signed reasoning, and never remembered."""
    return purpose is Purpose.FINAL or purpose in _ROWLESS or held.lent


def standing(ports: Ports, held: Held) -> Request:
    """The conversation as the next call finds it, without the rows in `held.unread`: from memory, or read afresh."""
    if held.request is None or held.calls_made >= COLD_EVERY:
        held.request = prefixing.cold_request(ports, held)
        held.unread.clear()
        held.judge = True
        held.calls_made = 0
        _check_chain(ports, held, held.request)
    return held.request


def _check_chain(ports: Ports, held: Held, request: Request) -> None:
    """Each request extends the last one of its session, byte for byte: proved from rows, in production too."""
    if held.chain is None:
        return
    count, known = held.chain
    # What was sent had been mended where its transcript needed that, and the same rows are mended the same way again.
    if digest.at(request, count) != known and digest.at(repair.mend(request)[0], count) != known:
        log.error("prefix_broken", session=str(held.claim.session), turn=str(held.claim.turn), blocks=count)
        emit(ports, held, EventKind.PREFIX_BROKEN, block=count)
        if ports.settings.strict:
            raise NightshiftError("the request does not extend the last one of its session", code="prefix_broken")


def _draft(
    ports: Ports, held: Held, base: Request, gathered: Gathered, purpose: Purpose, tail: str | None
) -> _Draft | Refusal | Short:
    model, known = held.claim.model, held.limits
    due = budget.due(caps.uses(held, base, gathered, known.window), held.warned) if has_result(gathered) else ()
    for one_due in due:
        text = warnings.line(one_due.use.kind, one_due.threshold, one_due.use.used, one_due.use.limit or Decimal(0))
        gathered = with_warning(gathered, text)
    rows = [m.row(PROVISIONAL + at, str(held.claim.turn)) for at, m in enumerate(gathered.messages)]
    cold = _beside(held, purpose)
    if not cold:
        rows = [*held.unread, *rows]
    request = projection.extend(base, rows)
    if tail is not None:
        request = projection.with_tail(request, blocks.split(tail))
    request, _, repairs = repair.mend(request) if held.judge or tail is not None else (request, None, ())
    held.judge = False
    counted = estimate.estimate(request, model)
    # A last call has no tools: what was billed with them says nothing of it.
    anchor = None if cold else held.baseline
    projected = estimate.projected(anchor, counted)
    # A cap holds whatever an edit left out weighed on the bill: its worst case is the larger count.
    dearest = max(projected, counted) if anchor and counted < anchor[0] else projected
    room = known.window - projected
    if room < 256:
        return Refusal(
            "context_overflow",
            f"the conversation needs about {projected} tokens and the window of {model} is {known.window}: "
            f"go on in a new session, or with a model that has a larger window",
        )
    to = ports.routes.declared(held.claim.provider).of_model(model)
    least = to.head.least_output
    few = {Purpose.PING: least, Purpose.PROBE: least, Purpose.TITLE: title.MOST_TOKENS}
    most = few.get(purpose, ports.settings.max_output_tokens)
    max_tokens = max(least, min(most, known.max_output, room))
    worst = prices.worst(
        model, dearest, max_tokens, at=datetime.now(UTC), ttl=held.context.ttl, provider=held.claim.provider,
        own=held.prices,
    )  # fmt: skip
    amount = _amount(ports, held, worst)
    if not isinstance(amount, Decimal):
        return amount
    state = PlanState(
        route=to.route, purpose=purpose, ttl=held.context.ttl, last_breakpoint_message_id=held.pinned,
        region_end_message_id=held.region_end, dialect=to.dialect,
    )  # fmt: skip
    warned = {one_due.use.kind: one_due.threshold for one_due in due}
    marked = cache_plan.place(request, state)
    return _Draft(gathered, rows, marked, counted, projected, max_tokens, amount, warned, repairs)


def _amount(ports: Ports, held: Held, worst: Decimal | None) -> Decimal | Refusal | Short:
    """What to reserve for a call that costs at most `worst`: it fits under the turn's own caps, and is drawn from those
    that it shares."""
    own = caps.caps(ports, held)
    every = own if worst is not None else (*own, *drawing.caps(ports, held))
    decided = budget.reserve(worst, held.claim.model, every)
    if isinstance(decided, budget.Fits) and worst is not None:
        decided = drawing.cover(ports, held, worst)
    match decided:
        case budget.Unpriced(message):
            return Refusal("price_unknown", message)
        case budget.Over("call", message):
            return Refusal("call_cap_reached", message)
        case budget.Over(scope, message, needs):
            return Short(scope, message, needs)
        case budget.Fits(amount):
            return amount


def _call_fields(
    ports: Ports, held: Held, call: UUID, purpose: Purpose, draft: _Draft, tail: str | None
) -> dict[str, Any]:
    request = draft.marked.request
    head = params.Params(
        held.claim.model, str(held.claim.session), draft.max_tokens, stream=ports.settings.provider_streams,
        shared=shared_prefix.key(request.tools_text, request.system[0]) if request.stable_proved else None,
    )  # fmt: skip
    return {
        "call": call, "c_step": held.step + 1, "c_purpose": purpose, "c_projected": draft.projected,
        "c_provider": held.claim.provider, "c_model": held.claim.model,
        "c_params": params.text(head, ports.routes.declared(held.claim.provider)),
        "c_marks": transcript.encode_marks(draft.marked, PROVISIONAL - 1), "c_tail": tail, "c_bare": held.lent,
        "c_apart": title.PREFIX.digest if purpose is Purpose.TITLE else None, "c_blocks": draft.marked.block_count,
        "c_digest": draft.marked.digest, "c_estimate": draft.estimate, "c_max_tokens": draft.max_tokens,
    }  # fmt: skip


def _no_call() -> dict[str, Any]:
    names = (
        "call", "c_step", "c_purpose", "c_provider", "c_model", "c_params", "c_marks", "c_tail", "c_apart",
        "c_blocks", "c_digest", "c_estimate", "c_projected", "c_max_tokens",
    )  # fmt: skip
    return {**dict.fromkeys(names), "c_bare": False}


def _write(
    ports: Ports,
    held: Held,
    gathered: Gathered,
    call: dict[str, Any],
    amount: Decimal,
    warned: dict[str, int],
    *,
    count: int,
    alone: bool = False,
) -> _Rows | Arrived:
    values: dict[str, Any] = {
        **message_params(gathered.messages), **run_params(gathered.runs), **fold_params(gathered.folds), **call,
        "session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence, "holder": held.claim.holder,
        "reserve": amount, "count_step": count, "warned": json.dumps(warned), "last_tool": held.last_tool,
        "alone": alone, "turn_cap": held.money.turn_cap, "session_cap": held.money.session_cap,
        "budget_version": held.money.budget_version,
    }  # fmt: skip

    kept = kept_params(gathered.runs)
    statement = statements.RESERVE_KEEPING if kept else statements.RESERVE

    def send(connection: Connection) -> _Rows | None:
        rows = every(connection, statement, values | kept)
        return _Rows(returned(rows), rows[0]["now"]) if rows else None

    def recover(connection: Connection) -> _Rows | None:
        fence.confirm(connection, held)
        return _Rows(None) if _landed(connection, held, gathered, call["call"]) else None

    written = ports.database.write(send, recover=recover)
    if written is not None:
        if written.now is not None:
            held.told(written.now)
        return written
    ports.database.read(lambda c: fence.confirm(c, held))
    caps.refresh(ports, held)
    return Arrived()


def _landed(connection: Connection, held: Held, gathered: Gathered, call: UUID | None) -> bool:
    """Whether the statement is there: by its call, or, without one, by its last message."""
    if call is not None:
        return one(connection, statements.CALL_STATUS, {"call": call}) is not None
    last = gathered.messages[-1]
    found = connection.execute(
        "select 1 from messages where turn = %s and step = %s and ordinal = %s",
        (held.claim.turn, last.step, last.ordinal),
    ).fetchone()
    return found is not None


def _advance(held: Held, gathered: Gathered) -> None:
    if gathered.messages:
        held.next_ordinal = max(m.ordinal for m in gathered.messages) + 1


def _from_rows(
    ports: Ports,
    held: Held,
    base: Request,
    purpose: Purpose,
    draft: _Draft,
    written: _Rows,
    marks: str,
    tail: str | None,
) -> MarkedRequest:
    """The marked request from row values. Raises when it is not the one that was reserved."""
    session = held.claim.session
    rows = [] if purpose in _ROWLESS else written.messages
    if rows is None:
        rows = ports.database.read(lambda c: transcript.load_messages(c, session, after=base.newest))
    elif not _beside(held, purpose):
        rows = [*held.unread, *rows]
    as_drafted = tail is None and not draft.repairs
    request = projection.renumbered(base, draft.marked.request, draft.rows, rows) if as_drafted else None
    if request is None:
        request = projection.extend(base, rows)
        if tail is not None:
            request = projection.with_tail(request, blocks.split(tail))
        if draft.repairs:
            request, _, _ = repair.mend(request)
    if not _beside(held, purpose):
        held.request = request
        held.unread.clear()
    marked = transcript.decode_marks(request, marks)
    if Chain(marked.block_count, marked.digest) != Chain(draft.marked.block_count, draft.marked.digest):
        raise NightshiftError("the rows do not make the request that was reserved", code="prefix_broken")
    return marked


def _tell(ports: Ports, held: Held, draft: _Draft) -> None:
    if draft.repairs:
        log.warning("transcript.repaired", session=str(held.claim.session), repairs=len(draft.repairs))
        found = [{"kind": r.kind, "message": r.message_id, "detail": r.detail} for r in draft.repairs[:20]]
        emit(ports, held, EventKind.REPAIRED, repairs=found)
    _tell_steered(ports, held, draft.gathered)
    for kind, percent in draft.warned.items():
        if kind == "money":  # people are told of it at other thresholds
            continue
        emit(ports, held, EventKind.BUDGET_WARNING, kind=kind, percent=percent)


def _tell_steered(ports: Ports, held: Held, gathered: Gathered) -> None:
    for steer in gathered.steered:
        emit(ports, held, EventKind.TURN_STEERED, **steer)

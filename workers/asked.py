"""What a person asked of the transcript as a whole, carried out at a boundary: rewind, restore, compact.

The invariant: a request is carried out once. The edit, the request's end and what the session's row knows of its cache
commit together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, assert_never
from uuid import UUID

import structlog
from psycopg.rows import DictRow

from shared.errors import Refused
from shared.request import canonical, estimate, projection
from shared.request import edits as edit_rules
from shared.request.assembled import Request
from shared.request.projection import EditRow
from shared.store import asked, transcript
from shared.store.pool import Connection
from shared.store.statements import every, one
from shared.store.statements import rewind as statements
from shared.values import ASKED_OF_TRANSCRIPT, EditKind, EventKind, InboxKind
from workers import anchoring, fence, gathering, reserving
from workers.anchoring import Anchor, Sent
from workers.compaction import run as compaction
from workers.emit import emit
from workers.held import Held
from workers.outgoing import Finished
from workers.ports import Ports
from workers.reduction import look, state
from workers.reduction.state import Context

MOST_CALLS = 200
"""How many calls before the cut are looked at. The newest one fits unless the past before the cut was edited since."""
_PROVISIONAL = 2**61
log = structlog.get_logger("asked")


def carried_out(ports: Ports, held: Held, results: Sequence[Finished], rows: Sequence[DictRow] | None) -> bool:
    """Whether the inbox held such a request. If so, the results are committed, each request is done or refused, and the
    inbox must be read again. A turn that has to stop leaves them to the next holder. Raises LeaseLost."""
    wanted = [row for row in rows or () if row["kind"] in ASKED_OF_TRANSCRIPT]
    if not wanted or held.interrupted() is not None:
        return False
    held.served = True
    reserving.commit_rows(ports, held, gathering.gather(held, results, None))
    for row in wanted:
        if held.interrupted() is None:
            _carry_out(ports, held, row)
    return True


def _carry_out(ports: Ports, held: Held, row: DictRow) -> None:
    kind = InboxKind(row["kind"])
    payload: Any = canonical.load_strict(row["payload"])
    try:
        match kind:
            case InboxKind.REWIND:
                _rewind(ports, held, row["id"], UUID(payload["to_turn"]))
            case InboxKind.RESTORE:
                _restore(ports, held, row["id"], int(payload["rewind"]))
            case InboxKind.COMPACT:
                _compact(ports, held, row["id"])
            case _:
                raise ValueError(f"{kind} is not asked of a transcript")
    except Refused as refused:
        _refuse(ports, held, row["id"], kind, refused.code, refused.message)


def _rewind(ports: Ports, held: Held, request: int, to_turn: UUID) -> None:
    session = held.claim.session
    first = ports.database.read(lambda c: asked.cut(c, session, to_turn))
    before = {"session": session, "before": request}
    newest = ports.database.read(lambda c: one(c, statements.NEWEST_MESSAGE, before)) or {}
    _travel(ports, held, request, EditRow(_PROVISIONAL, EditKind.REWIND, first, newest["id"]), cut=first)


def _restore(ports: Ports, held: Held, request: int, rewind: int) -> None:
    found = ports.database.read(lambda c: asked.undoable(c, held.claim.session, rewind))
    _travel(ports, held, request, EditRow(_PROVISIONAL, EditKind.RESTORE, found["id"]), cut=_PROVISIONAL)


def _travel(ports: Ports, held: Held, request: int, edit: EditRow, *, cut: int) -> None:
    """Write the edit. From here on the session's cache, chain and size are those of the newest call whose request is
    a prefix of what stands now; what was saved up against the past that is gone is forgotten."""
    session = held.claim.session
    before = ports.database.read(lambda c: transcript.load_edits(c, session))
    tokens_before = _size(held, _projected(ports, held, before), held.baseline)
    now = _projected(ports, held, [*before, edit])
    anchor = None if now is None else anchoring.find(now, _sent(ports, held, cut), held.claim.model)
    baseline = held.baseline if anchor is None or anchor.baseline is None else anchor.baseline
    tokens_after = _size(held, now, baseline)
    context = _afterwards(held.context, before, edit)
    values = {
        "request": request, "kind": edit.kind, "first": edit.first, "last": edit.last, "tokens_before": tokens_before,
        "tokens_after": tokens_after, "outcome": canonical.dump({"result": "done"}), **_cache(anchor, baseline),
        "warm_s": context.ttl.seconds, **context.params(),
    }  # fmt: skip
    last_edit = fence.write(ports, held, statements.TRAVEL, values, landed=statements.FOLDED)["last_edit"]
    held.new_epoch(last_edit, pinned=None if anchor is None else anchor.pinned)
    held.chain = None if anchor is None else anchor.chain
    held.baseline = baseline
    held.context = ports.database.read(lambda c: state.load(c, session))
    _tell(
        ports, held, request, edit.kind, edit=last_edit, tokens_before=tokens_before, tokens_after=tokens_after
    )  # fmt: skip


def _projected(ports: Ports, held: Held, edits: Sequence[EditRow]) -> Request | None:
    """What the model sees under these edits; None where no model has been called yet."""
    prefix = held.prefix
    if prefix is None:
        return None

    def read(connection: Connection) -> Request:
        rows = transcript.load_standing(connection, held.claim.session, edits)
        return projection.project(transcript.load_prefix(connection, prefix), rows, edits)

    return ports.database.read(read)


def _size(held: Held, request: Request | None, baseline: tuple[int, int] | None) -> int:
    """Tokens, as projected from what was billed."""
    if request is None:
        return 0
    return estimate.projected(baseline, estimate.estimate(request, held.claim.model))


def _sent(ports: Ports, held: Held, cut: int) -> list[Sent]:
    values = {"session": held.claim.session, "cut": cut, "limit": MOST_CALLS}
    return [Sent(**row) for row in ports.database.read(lambda c: every(c, statements.SENT, values))]


def _cache(anchor: Anchor | None, baseline: tuple[int, int] | None) -> dict[str, Any]:
    blocks, digest = (None, None) if anchor is None else anchor.chain
    counted, billed = baseline or (None, None)
    return {
        "chain_blocks": blocks, "chain_digest": digest, "pinned": None if anchor is None else anchor.pinned,
        "baseline_estimate": counted, "baseline_billed": billed, "read_at": None if anchor is None else anchor.read_at,
    }  # fmt: skip


def _afterwards(context: Context, before: Sequence[EditRow], edit: EditRow) -> Context:
    """The meters start again, as after every edit of the past. A summary that does not stand any more is judged by
    nobody."""
    newest = max((one.id for one in before if one.kind == EditKind.SUMMARY), default=None)
    stands = any(summary.id == newest for summary in edit_rules.apply([*before, edit]).summaries)
    return replace(
        context, meter=0.0, compact_meter=0.0, junk_tokens=0, regrow_to=0, verdict_due=context.verdict_due and stands
    )


def _compact(ports: Ports, held: Held, request: int) -> None:
    """A compaction that stands since it was asked for is the answer: its worker was lost before it could say so."""
    values = {"session": held.claim.session, "request": request}
    found = ports.database.read(lambda c: one(c, statements.COMPACTED_SINCE, values))
    if found is not None:
        sizes = {"tokens_before": found["tokens_before"], "tokens_after": found["tokens_after"]}
        _fold(ports, held, request, {"result": "done", **sizes}, edit=found["id"])
        return
    if held.prefix is None:
        _refuse(ports, held, request, InboxKind.COMPACT, "nothing_to_compact", "no model has been asked anything yet")
        return
    came = compaction.compact(ports, held, compaction.ASKED, tail=look.tail(ports.settings))
    match came:
        case compaction.Compacted():
            sizes = {"tokens_before": came.tokens_before, "tokens_after": came.tokens_after}
            outcome = {"result": "done", "fallback": came.fallback, **sizes}
            _fold(ports, held, request, outcome, edit=came.edit)
        case compaction.Skipped():
            sizes = {"tokens_before": came.tokens_before, "tokens_after": came.tokens_after}
            outcome = {"result": "skipped", "message": came.reason, **sizes}
            _fold(ports, held, request, outcome, edit=came.edit)
        case compaction.Blocked():
            _refuse(ports, held, request, InboxKind.COMPACT, "compaction_blocked", came.message)
        case compaction.Failed():
            if held.interrupted() is None:
                _refuse(ports, held, request, InboxKind.COMPACT, came.code, came.message)
        case _:
            assert_never(came)


def _refuse(ports: Ports, held: Held, request: int, kind: str, code: str, message: str) -> None:
    _fold(ports, held, request, {"result": "refused", "code": code, "message": message})
    _tell(ports, held, request, kind, error={"code": code, "message": message})


def _fold(ports: Ports, held: Held, request: int, outcome: dict[str, Any], edit: int | None = None) -> None:
    values = {"request": request, "edit": edit, "outcome": canonical.dump(outcome)}
    fence.write(ports, held, statements.FOLD_REQUEST, values, landed=statements.FOLDED)


def _tell(ports: Ports, held: Held, request: int, kind: str, **more: Any) -> None:
    log.info("asked.carried_out", session=str(held.claim.session), turn=str(held.claim.turn), kind=str(kind))
    emit(ports, held, EventKind.CONTEXT_EDITED, request=str(request), kind=str(kind), **more)

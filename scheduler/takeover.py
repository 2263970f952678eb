"""Takes turns away from holders that are dead, by raising the fence: whatever they still write is refused.

The invariant: what was judged is read again under the locks, in a later statement, so a process that came back in
between keeps its turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import structlog
from psycopg.rows import DictRow

from scheduler.liveness import Seen, Why
from scheduler.room import Room
from scheduler.rows import GONE, LOCKED, Did, Result, each
from shared.store import cancel, children
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import Statement, every, holder, liveness, one, run, turn_end, waiting
from shared.values import EventKind, RunStatus, TurnClass, TurnStatus

log = structlog.get_logger("scheduler")


def take_over(room: Room, dead: Iterable[tuple[Seen, Why]]) -> int:
    """Free every turn of each dead process, then mark its row lost. Returns how many turns were taken away."""
    taken = 0
    for row, why in dead:
        still = {"holder": row.boot_id, "beat_at": row.beat_at}
        tally = each(
            room,
            "takeover",
            lambda connection, limit, row=row: every(
                connection, turn_end.HELD_BY, {"holder": row.boot_id, "limit": limit}
            ),
            partial(_take_away, room, liveness.STILL_DEAD, still, row.silent_s),
        )
        taken += tally[Did.DONE]
        marked = room.database.read(lambda connection, still=still: one(connection, liveness.MARK_LOST, still))
        if marked:
            room.count(
                "worker.lost",
                boot=str(row.boot_id),
                kind=row.kind,
                pid=row.pid,
                why=why,
                silent_s=round(row.silent_s, 2),
            )
    return taken


def take_orphans(room: Room) -> int:
    """Free turns whose holder's row says stopped or is gone: a drain that ran out of time, a row that was lost."""
    tally = each(
        room,
        "orphans",
        lambda connection, limit: every(connection, liveness.ORPHANS, {"limit": limit}),
        partial(_take_away, room, liveness.STILL_STOPPED, {}, None),
    )
    return tally[Did.DONE]


def _take_away(
    room: Room,
    dead: Statement,
    seen: dict[str, Any],
    silent_s: float | None,
    connection: Connection,
    row: DictRow,
) -> Result:
    """Session, turn, then the doubt once more: is the turn still held, and is its holder still dead?"""
    boot = seen.get("holder") or row["holder"]
    parent = children.lock_parent(connection, row["id"])
    if one(connection, turn_end.LOCK_SESSION_SKIP, {"session": row["session"]}) is None:
        return LOCKED
    held = one(connection, turn_end.HELD_STILL, {"turn": row["id"], "holder": boot})
    if held is None or one(connection, dead, {**seen, "holder": boot}) is None:
        return GONE
    status, code, text = _outcome(held, room.settings.attempts)
    params = {"turn": row["id"], "session": row["session"], "status": status, "error_code": code, "error_text": text}
    step = fetch(connection, "select step from turns where id = %s", (row["id"],)) or {"step": 0}
    left = [] if status is TurnStatus.QUEUED else every(connection, holder.OPEN_RUNS, {"turn": row["id"], **step})
    taken = one(connection, turn_end.TAKE_AWAY, params)
    if taken is None:
        return GONE
    if left:
        run(connection, turn_end.ANSWER_LEFT, {**params, "fence": taken["fence"], **cancel.answers(left)})
    if status is not TurnStatus.QUEUED:
        run(connection, waiting.VOID_APPROVALS, params)
        run(connection, waiting.VOID_QUESTIONS, params)
    woken = children.over(connection, row["id"], parent) if parent and status is not TurnStatus.QUEUED else None
    turn_class = TurnClass(held["class"])
    ids: dict[str, Any] = {
        "turn": str(row["id"]), "holder": str(boot), "to": status, "attempts": held["attempts"],
        "lost_calls": taken["lost_calls"], "silent_s": silent_s,
    }  # fmt: skip

    def then() -> None:
        room.count("turn.taken_over", **ids)
        if woken is not None and woken.turn_class is not None:
            room.doorbell.ring(woken.turn_class)
        if status is TurnStatus.QUEUED:
            room.doorbell.ring(turn_class)
            return
        data: dict[str, object] = {"status": status, "answer": None, "error": _error(code, text)}
        told = [(EventKind.TOOL_FINISHED, _unknown(one)) for one in left if cancel.may_have_run(one)]
        room.publish(row["id"], step["step"], taken["fence"], *told, (EventKind.TURN_FINISHED, data))
        if parent is not None:
            room.tell_child(row["id"])

    return Result(Did.DONE, then)


def _outcome(held: DictRow, attempts: int) -> tuple[TurnStatus, str | None, str | None]:
    """Where a turn goes whose holder died: where it was asked to go, to its end after too many tries, or back."""
    if held["cancel_requested_at"] is not None:
        return TurnStatus.CANCELLED, None, None
    if held["attempts"] >= attempts:
        tool = (
            f"the last tool it asked for was {held['last_tool']}" if held["last_tool"] else "it had asked for no tool"
        )
        text = (
            f"the worker was lost {held['attempts']} times in a row at the same step of this turn; {tool}. "
            "Look at that tool's input and at the workers' memory, then send the turn again"
        )
        return TurnStatus.FAILED, "worker_lost_repeatedly", text
    return TurnStatus.QUEUED, None, None


def _unknown(run: DictRow) -> dict[str, object]:
    """What a worker tells of a run of which nobody knows: here the turn has none any more."""
    return {
        "ordinal": run["ordinal"], "tool": run["tool"], "status": RunStatus.UNKNOWN, "is_error": True,
        "chars": len(cancel.unknown(run)), "note": None,
    }  # fmt: skip


def _error(code: str | None, text: str | None) -> dict[str, object] | None:
    return {"code": code, "message": text} if code else None

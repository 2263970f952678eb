"""Calls that a person must allow: asked for in call order, bound to tool and arguments, decided once."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg.rows import DictRow

from shared.ids import uuid7
from shared.store.arrays import array
from shared.store.statements import every, waiting
from shared.text import bounded, clean_text
from shared.values import EventKind, ParkReason, RunStatus
from workers import fence
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.recording import Run, run_digest
from workers.tools.context import Arguments
from workers.waiting import around
from workers.waiting.gating import Asked
from workers.waiting.state import Ready, Stand, Wait, answered

EXPIRED = "nobody decided in time"


def stands(ports: Ports, held: Held, asked: Sequence[tuple[Run, Arguments, Asked]]) -> dict[int, Stand]:
    """How each of these runs stands, by ordinal; those of them that nobody was asked about are asked for now, unless a
    hook denies them.

    They are of one step, in call order. Raises LeaseLost.
    """
    if not asked:
        return {}
    step = asked[0][0].step
    rows = _rows(ports, held, step)
    found: dict[int, Stand] = {}
    missing: list[tuple[Run, Asked]] = []
    for run, given, one in asked:
        if run.ordinal not in rows:
            no = around.denied(held, run, given)
            if no is not None:
                found[run.ordinal] = no
            else:
                missing.append((run, one))
    if missing:
        _ask(ports, held, step, missing)
        rows = _rows(ports, held, step)
    if any(row["status"] == "pending" and row["over"] for row in rows.values()):
        close(ports, held, "expired", EXPIRED, due=True)
        rows = _rows(ports, held, step)
    if any(row["untold"] for row in rows.values()):
        _tell(ports, held, step)
    return found | {run.ordinal: _stand(ports, run, rows[run.ordinal]) for run, _, _ in asked if run.ordinal in rows}


def close(ports: Ports, held: Held, status: str, note: str, *, due: bool = False) -> int:
    """End what is still pending of this turn (with `due`, only what is past its limit). Returns how many."""
    row = fence.write(ports, held, waiting.CLOSE_APPROVALS, {"status": status, "note": note, "due": due})
    return row["closed"]


def _ask(ports: Ports, held: Held, step: int, missing: Sequence[tuple[Run, Asked]]) -> None:
    runs, reasons = [run for run, _ in missing], [one for _, one in missing]
    params = {
        "step": step, "requested_by": held.claim.requested_by, "limit_s": ports.settings.approval_limit_s,
        "a_id": array(str(uuid7()) for _ in runs), "a_ordinal": array(run.ordinal for run in runs),
        "a_tool": array(run.call.name for run in runs), "a_role": array(one.demand.role for one in reasons),
        "a_four_eyes": array(one.demand.four_eyes for one in reasons), "a_rule": array(one.rule for one in reasons),
        "a_why": array(None if one.why is None else clean_text(one.why) for one in reasons),
        "a_patterns": array(" ".join(one.patterns) for one in reasons),
    }  # fmt: skip
    asked = {
        row["ordinal"]: row["id"] for row in fence.rows(ports, held, waiting.REQUEST_APPROVALS, params) if row["id"]
    }
    for run, one in missing:
        if run.ordinal in asked:
            emit(
                ports, held, EventKind.APPROVAL_REQUESTED, step=step, ordinal=run.ordinal, tool=run.call.name,
                approval=str(asked[run.ordinal]), role=one.demand.role, rule=one.rule, why=one.why,
                arguments=bounded(run.call.arguments_text, 2000),
            )  # fmt: skip


def _tell(ports: Ports, held: Held, step: int) -> None:
    """Who watches learns of each decision once."""
    for row in fence.rows(ports, held, waiting.TELL_DECIDED, {"step": step}):
        if row["id"] is not None:
            emit(
                ports, held, EventKind.APPROVAL_DECIDED, step=step, ordinal=row["ordinal"], tool=row["tool"],
                approval=str(row["id"]), decision=row["status"], decided_by=row["decided_by"],
                note=None if row["note"] is None else bounded(row["note"], 2000),
            )  # fmt: skip


def _rows(ports: Ports, held: Held, step: int) -> dict[int, DictRow]:
    params = {"turn": held.claim.turn, "step": step}
    found = ports.database.read(lambda c: every(c, waiting.APPROVALS_OF_STEP, params))
    return {row["ordinal"]: row for row in found}


def _stand(ports: Ports, run: Run, row: DictRow) -> Stand:
    match row["status"]:
        case "pending":
            return Wait(ParkReason.APPROVAL, ports.settings.approval_limit_s)
        case "approved" if row["digest"] == run_digest(run.call):
            return Ready()
        case "denied":
            note = f": {row['note']}" if row["note"] else ""
            text = f"denied by {row['decided_by'] or 'the system'}{note}. It did not run; go on without it."
        case "expired":
            hours = ports.settings.approval_limit_s / 3600
            text = f"not approved: nobody decided within {hours:g} h. It did not run; go on without it and say so."
        case _:
            text = "not approved: the request is no longer valid. It did not run."
    return answered(run, text, RunStatus.DENIED)

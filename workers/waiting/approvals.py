"""Calls that a person must allow: asked for in call order, bound to tool and arguments, decided once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg.rows import DictRow

from shared.demands import Demand
from shared.ids import uuid7
from shared.store.arrays import array
from shared.store.statements import every, waiting
from shared.text import bounded
from shared.values import EventKind, ParkReason, RunStatus
from workers import fence
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.recording import Run, run_digest
from workers.waiting.state import Ready, Stand, Wait, answered

EXPIRED = "nobody decided in time"


def stands(ports: Ports, held: Held, runs: Sequence[Run], demanded: Mapping[str, Demand]) -> dict[int, Stand]:
    """How each of these runs stands, by ordinal; those of them that nobody was asked about are asked for now.

    `runs` are of one step, in call order. Raises LeaseLost.
    """
    if not runs:
        return {}
    step = runs[0].step
    rows = _rows(ports, held, step)
    missing = [run for run in runs if run.ordinal not in rows]
    if missing:
        _ask(ports, held, step, missing, demanded)
        rows = _rows(ports, held, step)
    if any(row["status"] == "pending" and row["over"] for row in rows.values()):
        close(ports, held, "expired", EXPIRED, due=True)
        rows = _rows(ports, held, step)
    if any(row["untold"] for row in rows.values()):
        _tell(ports, held, step)
    return {run.ordinal: _stand(ports, run, rows[run.ordinal]) for run in runs}


def close(ports: Ports, held: Held, status: str, note: str, *, due: bool = False) -> int:
    """End what is still pending of this turn (with `due`, only what is past its limit). Returns how many."""
    row = fence.write(ports, held, waiting.CLOSE_APPROVALS, {"status": status, "note": note, "due": due})
    return row["closed"]


def _ask(ports: Ports, held: Held, step: int, runs: Sequence[Run], demanded: Mapping[str, Demand]) -> None:
    rules = [demanded[run.call.name] for run in runs]
    params = {
        "step": step, "requested_by": held.claim.requested_by, "limit_s": ports.settings.approval_limit_s,
        "a_id": array(str(uuid7()) for _ in runs), "a_ordinal": array(run.ordinal for run in runs),
        "a_tool": array(run.call.name for run in runs), "a_role": array(rule.role for rule in rules),
        "a_four_eyes": array(rule.four_eyes for rule in rules),
    }  # fmt: skip
    asked = {
        row["ordinal"]: row["id"] for row in fence.rows(ports, held, waiting.REQUEST_APPROVALS, params) if row["id"]
    }
    for run, rule in zip(runs, rules, strict=True):
        if run.ordinal in asked:
            emit(
                ports, held, EventKind.APPROVAL_REQUESTED, step=step, ordinal=run.ordinal, tool=run.call.name,
                approval=str(asked[run.ordinal]), role=rule.role,
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

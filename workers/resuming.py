"""What a crash left open in a turn's last committed step, and the truth about each of its runs.

A repeatable run runs again. A run that may happen only once and was `started` without a result is answered as
unknown, with the time until which it may still have happened: no side effect happens twice, and the model is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.rows import DictRow

from shared.request import blocks
from shared.store.statements import every, holder, one
from shared.store.statements import step as statements
from shared.values import EventKind, Repeat, RunStatus
from workers.emit import emit
from workers.held import Held
from workers.outgoing import Finished
from workers.ports import Ports
from workers.providers.arguments import why_unfit
from workers.providers.replies import ToolCall
from workers.recording import Run
from workers.waiting.writes import fenced


@dataclass(frozen=True, slots=True)
class Left:
    """`results` are known already; `runs` are to be run, in order. Together they answer every open call."""

    results: tuple[Finished, ...]
    runs: tuple[Run, ...]


Next = Literal["run", "known", "unknown"]


def next_for(status: RunStatus, repeat: Repeat, *, unfit: bool = False) -> Next:
    """What the next holder does with a run found in this state. One that is `unfit` cannot have happened: it only gets
    the answer that says so."""
    match status:
        case RunStatus.DONE | RunStatus.FAILED | RunStatus.UNKNOWN | RunStatus.DENIED | RunStatus.CANCELLED:
            return "known"
        case RunStatus.ASKED | RunStatus.APPROVED:
            return "run"
        case RunStatus.STARTED:
            return "run" if unfit or repeat in (Repeat.REPEATABLE, Repeat.KEYED) else "unknown"


def unknown_text(until: datetime | None) -> str:
    """What the model reads of a run whose outcome nobody knows."""
    when = f"until {until:%H:%M:%S} UTC" if until else "at any time"
    return (
        f"outcome unknown: the worker was lost while this ran. It may have happened {when}; check before repeating it."
    )


def left_open(ports: Ports, held: Held) -> Left:
    """Read what is open of the last committed step; nothing where the turn is fresh."""
    if held.step == 0:
        return Left((), ())
    params = {"turn": held.claim.turn, "step": held.step}
    rows = ports.database.read(lambda c: every(c, holder.OPEN_RUNS, params))
    results: list[Finished] = []
    runs: list[Run] = []
    for row in rows:
        unfit = why_unfit(row["tool"], row["arguments"])
        match next_for(RunStatus(row["status"]), Repeat(row["repeat"]), unfit=unfit is not None):
            case "known":
                results.append(_finished(row, row["status"], row["result"] or "(no output)", is_error=row["is_error"]))
            case "unknown":
                unknown = _finished(row, RunStatus.UNKNOWN, unknown_text(row["may_run_until"]), is_error=True)
                _tell(ports, held, unknown)
                results.append(unknown)
            case "run":
                call = ToolCall(row["call_id"], row["tool"], row["arguments"], unfit)
                runs.append(Run(row["step"], row["ordinal"], call, Repeat(row["repeat"]), RunStatus(row["status"])))
    return Left(tuple(results), tuple(runs))


def answer(ports: Ports, held: Held) -> str | None:
    """What the turn's person was answered, where its holder was lost between that and the turn's end."""
    if held.step == 0:
        return None
    params = {"turn": held.claim.turn, "step": held.step}
    row = ports.database.read(lambda c: one(c, holder.ANSWERED, params))
    if row is None:
        return None
    return "".join(blocks.text_of(block) for block in blocks.split(row["content"])) or None


def _tell(ports: Ports, held: Held, unknown: Finished) -> None:
    """That nobody knows stands in the ledger at once, and is told with it: the next holder finds it said. Raises
    LeaseLost."""
    values = {
        "step": unknown.step, "ordinal": unknown.ordinal, "status": unknown.status, "result": unknown.text,
        "is_error": True,
    }  # fmt: skip
    fenced(ports, held, statements.FINISH_RUN, values)
    emit(
        ports, held, EventKind.TOOL_FINISHED, step=unknown.step, ordinal=unknown.ordinal, tool=unknown.tool,
        status=unknown.status, is_error=True, chars=len(unknown.text), note=None,
    )  # fmt: skip


def _finished(row: DictRow, status: str, text: str, *, is_error: bool) -> Finished:
    return Finished(row["step"], row["ordinal"], row["call_id"], row["tool"], status, text, is_error)

"""What a crash left open in a turn's last committed step, and the truth about each of its runs.

A repeatable run runs again, and so does a keyed one, under the same key. A checkable one is checked: what happened is
recorded as done; what did not runs again, once the lost run can no longer happen, and the turn sleeps until then. A run
that may happen only once and was `started` without a result, and one of which its check cannot tell, is answered as
unknown, with the time until which it may still have happened: no side effect happens twice, and the model is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from psycopg.rows import DictRow

from shared import effects
from shared.boottime import boottime
from shared.request import blocks
from shared.store.statements import every, holder, one
from shared.values import ParkReason, Repeat, RunStatus
from workers import answering, toolbatch
from workers.held import Held
from workers.outgoing import Finished
from workers.ports import Ports
from workers.providers.arguments import why_unfit
from workers.providers.replies import ToolCall
from workers.recording import Run
from workers.tools import checking, registry
from workers.tools.tool import CannotTell, Checked, DidNotHappen, Happened
from workers.waiting.state import Wait


@dataclass(frozen=True, slots=True)
class Left:
    """`results` are known already; `runs` are to be run, in order. Together they answer every open call; or, with
    `wait`, the turn must sleep before the rest can be said."""

    results: tuple[Finished, ...]
    runs: tuple[Run, ...]
    wait: Wait | None = None


Next = Literal["run", "known", "check", "unknown"]


def next_for(status: RunStatus, repeat: Repeat, *, unfit: bool = False) -> Next:
    """What the next holder does with a run found in this state. One that is `unfit` cannot have happened: it only gets
    the answer that says so."""
    match status:
        case RunStatus.DONE | RunStatus.FAILED | RunStatus.UNKNOWN | RunStatus.DENIED | RunStatus.CANCELLED:
            return "known"
        case RunStatus.ASKED | RunStatus.APPROVED:
            return "run"
        case RunStatus.STARTED:
            return "run" if unfit else _of_started(repeat)


def _of_started(repeat: Repeat) -> Next:
    match repeat:
        case Repeat.REPEATABLE | Repeat.KEYED:
            return "run"
        case Repeat.CHECKABLE:
            return "check"
        case Repeat.ONCE:
            return "unknown"


def left_open(ports: Ports, held: Held) -> Left:
    """Read what is open of the last committed step; nothing where the turn is fresh. Raises LeaseLost."""
    if held.step == 0:
        return Left((), ())
    params = {"turn": held.claim.turn, "step": held.step}
    rows = ports.database.read(lambda c: every(c, holder.OPEN_RUNS, params))
    found = [_look(ports, held, {**row, "tool": registry.current(row["tool"])}) for row in rows]
    waits = [one.limit_s for one in found if isinstance(one, Wait)]
    return Left(
        tuple(one for one in found if isinstance(one, Finished)),
        tuple(one for one in found if isinstance(one, Run)),
        Wait(ParkReason.TIME, max(waits)) if waits else None,
    )


def answer(ports: Ports, held: Held) -> str | None:
    """What the turn's person was answered, where its holder was lost between that and the turn's end."""
    if held.step == 0:
        return None
    params = {"turn": held.claim.turn, "step": held.step}
    row = ports.database.read(lambda c: one(c, holder.ANSWERED, params))
    if row is None:
        return None
    text = "".join(blocks.text_of(block) for block in blocks.split(row["content"]))
    return answering.answer(text, row["stop_reason"]) if text else None


def _look(ports: Ports, held: Held, row: DictRow) -> Finished | Run | Wait:
    """One run: its result, or what is to be run, or how long nobody can say."""
    unfit = why_unfit(row["tool"], row["arguments"])
    status, repeat = RunStatus(row["status"]), Repeat(row["repeat"])
    match next_for(status, repeat, unfit=unfit is not None):
        case "known":
            return _finished(row, status, row["result"] or "(no output)", is_error=row["is_error"])
        case "unknown":
            return _unknown(ports, held, row)
        case "check":
            return _checked(ports, held, row, _check(ports, held, row))
        case "run":
            maybe = status is RunStatus.STARTED and repeat is not Repeat.REPEATABLE and unfit is None
            return _run(row, unfit, _unknown_text(row) if maybe else None)


def _check(ports: Ports, held: Held, row: DictRow) -> Checked:
    """Asked on every claim anew: a check changes nothing. A turn that is to stop at once does not wait for it."""
    tool = registry.TOOLS.get(row["tool"])
    if tool is None:
        return CannotTell("there is no such tool any more")
    if held.must_stop():
        return CannotTell("the turn was stopped before this was looked up")
    context = toolbatch.context(
        ports, held, row["step"], row["ordinal"], deadline=boottime() + checking.CHECK_S
    )  # fmt: skip
    return checking.ask(context, tool, row["arguments"])


def _checked(ports: Ports, held: Held, row: DictRow, said: Checked) -> Finished | Run | Wait:
    match said:
        case Happened(result):
            status = RunStatus.FAILED if result.is_error else RunStatus.DONE
            found = _finished(row, status, result.text, is_error=result.is_error)
            toolbatch.settle(ports, held, found, "it had happened when its worker was lost")
            return found
        case DidNotHappen():
            # Asked before its time was over, "not yet" is all that this can mean: what ran it may live, and act.
            return Wait(ParkReason.TIME, row["left_s"]) if row["left_s"] > 0 else _run(row, None, None)
        case CannotTell(why):
            return _unknown(ports, held, row, why)
        case _:
            assert_never(said)


def _unknown(ports: Ports, held: Held, row: DictRow, why: str | None = None) -> Finished:
    """That nobody knows stands in the ledger at once, and is told with it: the next holder finds it said."""
    found = _finished(row, RunStatus.UNKNOWN, _unknown_text(row, why), is_error=True)
    toolbatch.settle(ports, held, found)
    return found


def _unknown_text(row: DictRow, why: str | None = None) -> str:
    tool = registry.TOOLS.get(row["tool"])
    return effects.unknown(row["may_run_until"], why=why, look=None if tool is None else tool.look)


def _run(row: DictRow, unfit: str | None, unknown: str | None) -> Run:
    call = ToolCall(row["call_id"], row["tool"], row["arguments"], unfit)
    return Run(row["step"], row["ordinal"], call, Repeat(row["repeat"]), RunStatus(row["status"]), unknown=unknown)


def _finished(row: DictRow, status: str, text: str, *, is_error: bool) -> Finished:
    return Finished(row["step"], row["ordinal"], row["call_id"], row["tool"], status, text, is_error)

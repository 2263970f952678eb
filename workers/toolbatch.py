"""One batch of tool runs, in emission order: each call gets exactly one result, whatever happens.

`started` is committed before a run begins (in T1, or here for the later runs of a batch that may not be repeated), and
a run that may not be repeated commits its own result when it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from shared.boottime import boottime
from shared.request import estimate
from shared.store.statements import step as statements
from shared.text import bounded
from shared.values import EventKind, Repeat, RunStatus
from workers import batch_room, fence, grants, spill
from workers.batch_room import Room
from workers.emit import emit
from workers.grants import Grant
from workers.held import Held, Interrupt
from workers.outgoing import Finished, kept_params
from workers.pause import Point
from workers.ports import Ports
from workers.recording import Run
from workers.tools import dispatch, read_artifact, registry
from workers.tools.context import Came, Store, ToolContext, ToolResult
from workers.waiting.stands import of_batch
from workers.waiting.state import Answered, Wait

CANCELLED = "cancelled before it ran: the turn was stopped"
_NEVER_RAN = ToolResult(CANCELLED, is_error=True, came=Came.STOPPED)


@dataclass(frozen=True, slots=True)
class Batch:
    """What came of a batch, a result a run; or, with `wait`, what the turn must sleep for before the rest can be
    told. What is known by then stands in the rows."""

    results: tuple[Finished, ...]
    wait: Wait | None = None


def run_batch(ports: Ports, held: Held, runs: Sequence[Run], known: Sequence[Finished] = ()) -> Batch:
    """Run what may run, in emission order, up to the first run that somebody else must settle first. `known` are
    results of the same step that stand in rows already.

    Raises LeaseLost where others have the turn by now.
    """
    room = _room(held)
    stands = {} if held.must_stop() else of_batch(ports, held, _free(held, runs), room.for_children)
    together = not stands and all(run.repeat is Repeat.REPEATABLE for run in runs)
    results: list[Finished] = []
    known = [_bounded(held, result, room) for result in known]
    for run in runs:
        stand = stands.get(run.ordinal)
        refusal = CANCELLED if held.must_stop() else room.refusal()
        if refusal is not None:
            results.append(_left_out(ports, held, run, refusal))
            continue
        if isinstance(stand, Wait):
            _keep(ports, held, runs, results)
            return Batch((), stand)
        if isinstance(stand, Answered):
            results.append(_bounded(held, stand.finished, room))
            continue
        if not together and run.grant is None:
            results.append(_run(ports, held, replace(run, grant=_start(ports, held, run)), room))
        else:
            results.append(_run(ports, held, run, room))
    every = sorted((*known, *results), key=lambda one: one.ordinal)
    return Batch(spill.fitted(held.claim.turn, every, room.budget, recall=_recalls(held)))


def _recalls(held: Held) -> bool:
    return spill.RECALL in held.claim.tools


def _bounded(held: Held, finished: Finished, room: Room) -> Finished:
    """The result, or a preview of it where it is too long by itself."""
    tool = registry.TOOLS.get(finished.tool)
    most = room.budget.single if tool is None else min(tool.cap_chars, room.budget.single)
    bounded_already = finished.tool in spill.BOUNDED
    if len(finished.text) > most and not bounded_already:
        finished = spill.keep(held.claim.turn, finished, recall=_recalls(held))
    room.count(finished.text, whole=bounded_already)
    return finished


def _free(held: Held, runs: Sequence[Run]) -> list[Run]:
    """Those whose tool no admin has stopped: nobody is asked to allow what is refused, and no child is made of it.
    Children that were made before are still waited for."""
    return [run for run in runs if run.call.name not in held.stopped_tools or run.status is RunStatus.STARTED]


def _keep(ports: Ports, held: Held, runs: Sequence[Run], results: Sequence[Finished]) -> None:
    """What ran before the turn sleeps must not run again when it wakes."""
    repeatable = {run.ordinal for run in runs if run.repeat is Repeat.REPEATABLE}
    for result in results:
        if result.ordinal in repeatable:
            _commit_result(ports, held, result)


def _room(held: Held) -> Room:
    """What the window has left, anchored on what was billed last."""
    used = estimate.estimate(held.request, held.claim.model) if held.request is not None else 0
    used = estimate.projected(held.baseline, used)
    return batch_room.room(held.claim.model, held.limits.window, used)


def _left_out(ports: Ports, held: Held, run: Run, refusal: str) -> Finished:
    """It does not run here. That it never ran can be said only of one that nobody had started before."""
    if run.unknown is None:
        return _finished(run, RunStatus.CANCELLED, ToolResult(refusal, is_error=True))
    found = _finished(run, RunStatus.UNKNOWN, ToolResult(run.unknown, is_error=True))
    settle(ports, held, found)
    return found


def _run(ports: Ports, held: Held, run: Run, room: Room) -> Finished:
    emit(
        ports, held, EventKind.TOOL_CALLED, step=run.step, ordinal=run.ordinal, tool=run.call.name,
        arguments=bounded(run.call.arguments_text, 2000),
    )  # fmt: skip
    held.last_tool = run.call.name
    ports.pauses.at(Point.BEFORE_TOOL)
    grant = _granted(ports, held, run)
    result = _NEVER_RAN if grant is None else _perform(ports, held, run, grant)
    ports.pauses.at(Point.AFTER_TOOL)
    status = _status(held, run, result)
    text = run.unknown if status is RunStatus.UNKNOWN and run.unknown is not None else result.text
    result = replace(result, text=text)
    if run.call.name in spill.PAGES:
        finished = _finished(run, status, room.page(result, read_artifact.shortened))
    else:
        finished = _bounded(held, _finished(run, status, result), room)
    if run.repeat is not Repeat.REPEATABLE:
        _commit_result(ports, held, finished)
    _tell(ports, held, finished, result.note)
    return finished


def _status(held: Held, run: Run, result: ToolResult) -> RunStatus:
    if result.came is Came.LOST or (result.came is Came.STOPPED and run.unknown is not None):
        return RunStatus.UNKNOWN
    if not result.is_error:
        return RunStatus.DONE
    return RunStatus.CANCELLED if held.interrupted() is Interrupt.CANCEL else RunStatus.FAILED


def settle(ports: Ports, held: Held, finished: Finished, note: str | None = None) -> None:
    """A result that is known without a run stands in the ledger and is told. Raises LeaseLost."""
    _commit_result(ports, held, finished)
    _tell(ports, held, finished, note)


def _tell(ports: Ports, held: Held, finished: Finished, note: str | None) -> None:
    whole = finished.text if finished.kept is None else finished.kept.text
    emit(
        ports, held, EventKind.TOOL_FINISHED, step=finished.step, ordinal=finished.ordinal, tool=finished.tool,
        status=finished.status, is_error=finished.is_error, chars=len(whole), note=note,
    )  # fmt: skip


def _granted(ports: Ports, held: Held, run: Run) -> Grant | None:
    """Right before a run: past its lease this worker must not act, for others may have been told that it is dead.

    A lease also runs out while the database is away. Then nobody took the turn, and giving it up here would strand it
    with a holder that lives: so the renewal is waited for, and `started` said again, which the fence refuses if it
    was taken. None where the turn was stopped meanwhile.
    """
    grant = None if run.repeat is Repeat.REPEATABLE else run.grant
    grant = grant or grants.given(ports.life, run.run_s)
    while grants.act_until(ports.life, grant) <= boottime():
        if ports.life.await_lease(1.0):
            grant = _start(ports, held, run)
        elif held.must_stop():
            return None
    return grant


def _perform(ports: Ports, held: Held, run: Run, grant: Grant) -> ToolResult:
    stop = held.stopped_tools.get(run.call.name)
    if stop is not None:
        words = f"refused: an admin stopped the tool {run.call.name} (stop {stop})"
        return ToolResult(words, is_error=True, came=Came.STOPPED)
    if run.call.malformed is not None:
        return ToolResult(f"the arguments could not be read: {run.call.malformed}", is_error=True)
    made = context(ports, held, run.step, run.ordinal, deadline=boottime() + run.run_s)
    if run.repeat is not Repeat.REPEATABLE:
        right = partial(grants.act_until, ports.life, grant)
        made = replace(made, repeat=run.repeat, deadline=grant.deadline, act_until=right)
    return dispatch.run_one(made, run.call.name, run.call.arguments_text, held.claim.tools)


def context(ports: Ports, held: Held, step: int, ordinal: int, *, deadline: float) -> ToolContext:
    """Of a run that only reads."""
    return ToolContext(
        session=str(held.claim.session),
        turn=str(held.claim.turn),
        step=step,
        ordinal=ordinal,
        workspace=held.claim.workspace,
        attached=held.claim.folder,
        cancelled=held.must_stop,
        store=Store(ports.database, ports.settings, held.claim.session, held.claim.turn, held.claim.fence),
        deadline=deadline,
        act_until=ports.life.lease_deadline,
        pausing=ports.pauses.at,
    )


def _finished(run: Run, status: RunStatus, result: ToolResult) -> Finished:
    return Finished(run.step, run.ordinal, run.call.id, run.call.name, status, result.text, result.is_error)


def _start(ports: Ports, held: Held, run: Run) -> Grant:
    grant = grants.given(ports.life, run.run_s)
    values = {"step": run.step, "ordinal": run.ordinal, "holder": held.claim.holder, "may_run_s": run.run_s}
    fence.write(ports, held, statements.START_RUN, values)
    return grant


def _commit_result(ports: Ports, held: Held, finished: Finished) -> None:
    values = {
        "step": finished.step, "ordinal": finished.ordinal, "status": finished.status, "result": finished.text,
        "is_error": finished.is_error,
    }  # fmt: skip
    if finished.status == RunStatus.CANCELLED:
        return  # T2 writes it with the others
    kept = kept_params([finished])
    fence.write(ports, held, statements.FINISH_RUN_KEEPING if kept else statements.FINISH_RUN, values | kept)

"""One batch of tool runs: each call gets exactly one result, whatever happens, and they stand in emission order.

The batch is walked in that order and cut into runs that may overlap (workers/tools/segments.py); what somebody else
must settle first ends such a run. `started` is committed before a run begins (in T1, or here for the later runs of a
batch that may not be repeated), and a run that may not be repeated commits its own result when it ends. Whatever is
written, the turn's own thread writes; the others only run tools.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shared.boottime import boottime
from shared.request import estimate
from shared.store.statements import step as statements
from shared.text import bounded
from shared.values import EventKind, Repeat, RunStatus
from workers import abreast, batch_room, circling, fence, grants, reading, spill, telling
from workers.batch_room import Room
from workers.circling import NOT_RUN
from workers.emit import emit
from workers.grants import Grant
from workers.held import Held, Interrupt
from workers.outgoing import Finished, kept_params
from workers.pause import Point
from workers.ports import Ports
from workers.recording import Run, run_digest
from workers.tools import areas, dispatch, read_artifact, registry, segments
from workers.tools.context import Came, Store, ToolContext, ToolResult
from workers.tools.segments import Touched
from workers.waiting.stands import demanded, of_batch
from workers.waiting.state import Answered, Stand, Wait

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
    left = list(runs)
    while left:
        stand = stands.get(left[0].ordinal)
        if isinstance(stand, Wait | Answered) and not held.must_stop():
            refusal = _refusal(held, room)
            if refusal is None and isinstance(stand, Wait):
                _keep(ports, held, runs, results)
                return Batch((), stand)
            run = left.pop(0)
            if refusal is not None:
                results.append(_left_out(ports, held, run, refusal))
            elif isinstance(stand, Answered):
                results.append(_noted(ports, held, run, stand.finished.text, _bounded(held, stand.finished, room)))
            continue
        segment = left[: _together(ports, held, left, stands)]
        del left[: len(segment)]
        results += _segment(ports, held, segment, room, started=together)
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


def _together(ports: Ports, held: Held, runs: Sequence[Run], stands: Mapping[int, Stand]) -> int:
    """How many of these, from the first on, may run side by side as things stand."""
    if len(runs) == 1 or held.must_stop():
        return 1
    looking = context(ports, held, runs[0].step, runs[0].ordinal, deadline=boottime())

    def touched() -> Iterator[Touched | None]:
        for run in runs:
            if isinstance(stands.get(run.ordinal), Wait | Answered) or run.call.malformed is not None:
                yield None
            else:
                yield areas.of_call(looking, registry.TOOLS.get(run.call.name), run.call.arguments_text)

    return segments.together(touched())


def _refusal(held: Held, room: Room) -> str | None:
    if held.must_stop():
        return CANCELLED
    return NOT_RUN if held.circle.stop is not None else room.refusal()


def _noted(ports: Ports, held: Held, run: Run, came: str, finished: Finished) -> Finished:
    """The result with a note where what `came` goes round in a circle: behind a preview too, where it is read."""
    seen = circling.seen(run.step, run_digest(run.call), circling.came(came), finished.status, run.repeat)
    note = held.circle.add(seen, circling.limits(ports.settings))
    return finished if note is None else replace(finished, text=circling.noted(finished.text, note))


def _segment(ports: Ports, held: Held, runs: Sequence[Run], room: Room, *, started: bool) -> list[Finished]:
    """Runs that may overlap, with a result each, in emission order."""
    results: list[Finished] = []
    ready: list[Run] = []
    for run in runs:
        refusal = _refusal(held, room)
        if refusal is not None:
            results.append(_left_out(ports, held, run, refusal))
        elif not started and run.grant is None:
            ready.append(replace(run, grant=_start(ports, held, run)))
        else:
            ready.append(run)
    gone = threading.Event()
    for run in ready:
        _tell_called(ports, held, run)
    for at, result in abreast.ends([partial(_act, ports, held, run, gone) for run in ready], gone):
        run = ready[at]
        # Where the time to act was over, `started` is written again first, and this thread writes.
        came = _act_late(ports, held, run) if result is None else result
        results.append(_settled(ports, held, run, came, room))
    return sorted(results, key=lambda one: one.ordinal)


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


def _tell_called(ports: Ports, held: Held, run: Run) -> None:
    emit(
        ports, held, EventKind.TOOL_CALLED, step=run.step, ordinal=run.ordinal, tool=run.call.name,
        arguments=bounded(run.call.arguments_text, 2000),
    )  # fmt: skip
    held.last_tool = run.call.name


def _act(ports: Ports, held: Held, run: Run, gone: threading.Event) -> ToolResult | None:
    """On any thread: run the tool, which writes nothing for the turn. None where the right to act is over."""
    ports.pauses.at(Point.BEFORE_TOOL)
    grant = _right(ports, run)
    if grants.act_until(ports.life, grant) <= boottime():
        return None
    result = _perform(ports, held, run, grant, gone)
    ports.pauses.at(Point.AFTER_TOOL)
    return result


def _act_late(ports: Ports, held: Held, run: Run) -> ToolResult:
    grant = _granted(ports, held, run)
    result = _NEVER_RAN if grant is None else _perform(ports, held, run, grant, threading.Event())
    ports.pauses.at(Point.AFTER_TOOL)
    return result


def _settled(ports: Ports, held: Held, run: Run, result: ToolResult, room: Room) -> Finished:
    status = _status(held, run, result)
    text = run.unknown if status is RunStatus.UNKNOWN and run.unknown is not None else result.text
    result = replace(result, text=text)
    if run.call.name in spill.PAGES:
        finished = _finished(run, status, room.page(result, read_artifact.shortened))
    else:
        finished = _bounded(held, _finished(run, status, result), room)
    finished = _noted(ports, held, run, text, finished)
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
    telling.tool_ran(ports.telemetry, held, finished)


def _granted(ports: Ports, held: Held, run: Run) -> Grant | None:
    """Right before a run: past its lease this worker must not act, for others may have been told that it is dead.

    A lease also runs out while the database is away. Then nobody took the turn, and giving it up here would strand it
    with a holder that lives: so the renewal is waited for, and `started` said again, which the fence refuses if it
    was taken. None where the turn was stopped meanwhile.
    """
    grant = _right(ports, run)
    while grants.act_until(ports.life, grant) <= boottime():
        if ports.life.await_lease(1.0):
            grant = _start(ports, held, run)
        elif held.must_stop():
            return None
    return grant


def _right(ports: Ports, run: Run) -> Grant:
    grant = None if run.repeat is Repeat.REPEATABLE else run.grant
    return grant or grants.given(ports.life, run.run_s)


def _perform(ports: Ports, held: Held, run: Run, grant: Grant, gone: threading.Event) -> ToolResult:
    stop = held.stopped_tools.get(run.call.name)
    if stop is not None:
        words = f"refused: an admin stopped the tool {run.call.name} (stop {stop})"
        return ToolResult(words, is_error=True, came=Came.STOPPED)
    if run.call.malformed is not None:
        return ToolResult(f"the arguments could not be read: {run.call.malformed}", is_error=True)
    made = context(ports, held, run.step, run.ordinal, deadline=boottime() + run.run_s)
    may_read = reading.may_read(held.claim.tools, demanded(ports.settings.approve_tools), held.stopped_tools)
    made = replace(made, cancelled=lambda: gone.is_set() or held.must_stop(), may_read=may_read)
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
        store=Store(
            ports.database, ports.settings, held.claim.session, held.claim.turn, held.claim.fence, held.claim.profile
        ),
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

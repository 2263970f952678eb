"""The agent loop: two commits a step around the outside world. Everything it decides is in the rows before it acts on
it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import assert_never

from shared.errors import LeaseLost, NightshiftError
from shared.values import EventKind, InboxKind, ParkReason, Purpose, Refund, TurnClass, TurnStatus
from workers import (
    answering,
    asked,
    booking,
    budget,
    circling,
    claiming,
    conversing,
    failing,
    gathering,
    prefixing,
    recording,
    reserving,
    resuming,
    routing,
    titling,
    toolbatch,
)
from workers.circling import Stop
from workers.emit import emit
from workers.held import STEERED, Held, Interrupt
from workers.outcome import Again, Ended, Parked, Released, Stepped, TurnOutcome
from workers.pause import Point
from workers.ports import Ports
from workers.prompt import final as last_words
from workers.providers import failures
from workers.providers.replies import Partial, Reply
from workers.recording import Ending, Outcome
from workers.reduction import consider, idling, warming
from workers.reserving import Arrived, Planned, Refusal, Short
from workers.toolbatch import Batch
from workers.waiting import money, park, stands

NO_RUNS = Batch(())
CAP_CHANGES = 20


def run_turn(ports: Ports, held: Held) -> TurnOutcome:
    """Drive a claimed turn to its outcome. Raises LeaseLost when the right to write is gone."""
    batch = _take_up(ports, held)
    silent, looking = False, True
    said = resuming.answer(ports, held) if not batch.results and batch.wait is None else None
    if said is not None and recording.finished(ports, held, Ending(TurnStatus.DONE, answer=said)):
        return Ended(Ending(TurnStatus.DONE, answer=said))
    while True:
        batch, parked = _sleep(ports, held, batch)
        if parked is not None:
            return parked
        results = batch.results
        # A step in the middle of a turn takes it that nobody has written meanwhile: the write that reserves it sees.
        looking = looking or not results or held.steps_used >= held.claim.max_steps
        rows = gathering.waiting(ports, held) if looking else None
        if asked.carried_out(ports, held, results, rows):
            batch = NO_RUNS
            continue
        gathered = gathering.gather(held, results, rows)
        if gathered.folds:
            held.circle.forget()
        if len(gathered.folds) == gathering.FOLD_LIMIT:  # more may wait, which no call should go out without
            reserving.commit_rows(ports, held, gathered)
            batch, silent = NO_RUNS, False
            continue
        stop = held.interrupted()
        if stop is not None or held.claim.turn_class is TurnClass.CHORE:
            if stop is None and gathered.empty:
                idling.compact(ports, held)
                warming.ping(ports, held)
                titling.write(ports, held)
            reserving.commit_rows(ports, held, gathered)
            outcome = _stopped(ports, held, stop)
        else:
            outcome = _step(ports, held, gathered, silent=silent)
        match outcome:
            case Ended() | Parked() | Released():
                return outcome
            case Stepped(batch, silent):
                looking = False
                _give_way(ports, held)
            case Arrived():
                looking = True
            case Again():
                batch = NO_RUNS
            case None:  # something arrived while the turn was ending: it goes on
                batch, silent = NO_RUNS, False
            case _:
                assert_never(outcome)


def _take_up(ports: Ports, held: Held) -> Batch:
    """What the last committed step left open, as it stands now."""
    left = resuming.left_open(ports, held)
    if held.step > 0:
        held.circle = circling.read(ports.database, held.claim.turn, circling.limits(ports.settings))
    if left.wait is not None:
        return Batch((), left.wait)
    return toolbatch.run_batch(ports, held, left.runs, left.results)


def _give_way(ports: Ports, held: Held) -> None:
    """With a single slot, a question does not wait for the whole of a child or a job. It is asked after a step, never
    before the first: so each claim of the long one gets on, whatever floods."""
    if held.gives_way and claiming.question_may_run(ports):
        held.interrupt(Interrupt.YIELD)


def _sleep(ports: Ports, held: Held, batch: Batch) -> tuple[Batch, Parked | None]:
    """Park for what the batch waits for, or, where that has come meanwhile, look at its runs anew."""
    while batch.wait is not None:
        if not held.must_stop() and park.park(ports, held, batch.wait):
            return batch, Parked(batch.wait.reason, batch.wait.limit_s)
        if any(row["kind"] == InboxKind.STEER for row in gathering.waiting(ports, held)):
            park.person_spoke(ports, held, batch.wait.reason)
        batch = _take_up(ports, held)
    return batch, None


def _step(
    ports: Ports, held: Held, gathered: gathering.Gathered, *, silent: bool
) -> TurnOutcome | Stepped | Again | Arrived | None:
    """Book, reserve, call, record, run the tools."""
    left = booking.book(ports, held, gathered)
    if left is not None:
        return left
    prefixing.ensure(ports, held)
    planned = _plan(ports, held, gathered, silent=silent)
    if planned is None or isinstance(planned, Arrived):
        return planned
    if isinstance(planned, Refusal):
        if planned.code == failures.CONTEXT_OVERFLOW:
            why = consider.overflowed(ports, held)
            if why is None:
                return None
            planned = replace(planned, message=why)
        if routing.leave(ports, held, planned.code, planned.message):
            return Again()
        return _end(ports, held, Ending(TurnStatus.FAILED, error_code=planned.code, error_text=planned.message))
    if isinstance(planned, Short):
        return _short(ports, held, planned)
    emit(ports, held, EventKind.STEP_STARTED, purpose=planned.purpose)
    ports.pauses.at(Point.RESERVED)
    match conversing.converse(ports, held, planned):
        case conversing.Answered(reply):
            return _answered(ports, held, planned, reply)
        case conversing.Failed() as failed:
            return failing.failed(ports, held, planned, failed)
        case conversing.Cut() as cut:
            return _cut(ports, held, planned, cut)
        case conversing.Steered(partial):
            return _steered(ports, held, planned, partial)


def _short(ports: Ports, held: Held, short: Short) -> Ended | Parked | None:
    """Wait for money without a worker, or end for want of it. What was gathered stands in the transcript by now."""
    if not money.may_wait(held, short):
        return _end(ports, held, money.ending(ports, held, short))
    if not held.must_stop() and money.sleep(ports, held, short):
        return Parked(ParkReason.MONEY, ports.settings.money_limit_s, short.message)
    return None


def _plan(
    ports: Ports, held: Held, gathered: gathering.Gathered, *, silent: bool
) -> Planned | Refusal | Short | Arrived | None:
    """The next call: one that failed is made again as what it was; no words or no budget left asks for the last one.
    Where there can be none, what was gathered stands all the same; None where the past was rewritten and the boundary
    is to be looked at again."""
    again = held.failed_purpose is not None
    if again:
        final = held.failed_purpose is Purpose.FINAL
    else:
        final = (silent and gathered.empty) or held.steps_used >= held.claim.max_steps or held.circle.stop is not None
    if not final:
        considered = consider.consider(ports, held, gathered)
        if considered is None:
            return None
        planned = reserving.reserve(ports, held, considered, again=again)
        if isinstance(planned, Refusal | Short):
            reserving.commit_rows(ports, held, considered)
        return planned
    reserving.commit_rows(ports, held, gathered)
    tail = last_words.tail(_why_last(held))
    for _ in range(CAP_CHANGES):  # what was gathered stands, so there is nothing else to look at again
        planned = reserving.reserve(ports, held, gathering.NOTHING, Purpose.FINAL, tail=tail)
        if not isinstance(planned, Arrived):
            return planned
    raise NightshiftError("the caps of this turn change faster than it can reserve a call", code="caps_moving")


def _why_last(held: Held) -> last_words.Cause:
    if held.steps_used >= held.claim.max_steps:
        return last_words.Cause.STEPS
    match held.circle.stop:
        case Stop.FAILING:
            return last_words.Cause.FAILING
        case Stop.STALE:
            return last_words.Cause.STALE
        case None:
            return last_words.Cause.NO_TEXT


def _answered(ports: Ports, held: Held, planned: Planned, reply: Reply) -> TurnOutcome | Stepped | None:
    content, reasoning = conversing.content_of(reply)
    if planned.purpose is Purpose.FINAL:
        reasoning = None  # signed behind a prefix without tools, which no later call has
    calls = reply.tool_calls if planned.purpose is Purpose.MAIN else ()
    runs = recording.runs_of(ports.life, calls, planned.step, partial(stands.held_back, ports, held))
    bill = conversing.bill(held, planned, reply)
    outcome = replace(
        conversing.settled(bill, reply, content, reasoning, runs),
        refund=budget.of_tools([run.call.name for run in runs], held.refunds, held.claim.max_steps),
    )
    ending = _ending(planned, reply) if not runs else None
    done = ending is not None and ending.status is TurnStatus.DONE
    due = consider.due_after(ports, held, outcome.usage) if done and planned.purpose is Purpose.MAIN else None
    recorded = recording.record(ports, held, planned, outcome, ending if due is None else None)
    ports.pauses.at(Point.RECORDED)
    emit(
        ports, held, EventKind.STEP_FINISHED, step=planned.step, text=reply.text.strip() and reply.text,
        cost_usd=None if outcome.cost is None else float(outcome.cost), tokens=conversing.tokens(outcome.usage),
        stop_reason=reply.stop_reason,
    )  # fmt: skip
    if recorded.cancel_requested:
        held.interrupt(Interrupt.CANCEL)
    if ending is None or due is not None:
        money.tell(ports, held)
    if ending is not None:
        if due is not None:
            consider.after_turn(ports, held, due)
            return Ended(ending) if recording.finished(ports, held, ending) else None
        return Ended(ending) if recorded.ended else None
    return Stepped(toolbatch.run_batch(ports, held, runs), silent=not runs)


def _ending(planned: Planned, reply: Reply) -> Ending | None:
    """How a reply without tool calls ends the turn; None where one more, `final`, call must ask for words."""
    if reply.stop_reason == "model_context_window_exceeded":
        text = "the answer no longer fits the model's window: go on in a new session, or with a larger window"
        return Ending(TurnStatus.FAILED, answer=reply.text or None, error_code="context_overflow", error_text=text)
    if reply.text.strip():
        return Ending(TurnStatus.DONE, answer=answering.answer(reply.text, reply.stop_reason))
    if reply.refusal is not None or reply.stop_reason == "refusal":
        text = f"the model declined to answer{f' ({reply.refusal})' if reply.refusal else ''}: put it another way"
        return Ending(TurnStatus.FAILED, error_code="model_refused", error_text=text)
    if planned.purpose is Purpose.FINAL:
        text = "the model ended without an answer, also when asked for a summary: ask again, or try another model"
        return Ending(TurnStatus.FAILED, error_code="no_answer", error_text=text)
    return None


def _cut(ports: Ports, held: Held, planned: Planned, cut: conversing.Cut) -> TurnOutcome:
    """Keep the visible text, marked cut; a drained turn starts that step anew elsewhere."""
    drained = cut.reason is Interrupt.DRAIN
    text = "" if drained else cut.partial.text
    refund = Refund.LOST_CALL if drained else None
    _keep(ports, held, planned, conversing.cut_short(held, planned, cut.partial, text, cut.reason, refund), text)
    return _stopped(ports, held, cut.reason)


def _steered(ports: Ports, held: Held, planned: Planned, partial: Partial) -> Stepped:
    """Keep the visible text as what the model said so far; the words that cut it follow at the next boundary. Nothing
    else of the answer is kept: reasoning is signed for an answer that never came, and no half-made call may run. The
    step is given back where it had been counted, and what comes next is no repeat of a call that failed."""
    refund = Refund.STEER_CUT if planned.purpose is Purpose.MAIN else None
    outcome = conversing.cut_short(held, planned, partial, partial.text, STEERED, refund)
    kept = _keep(ports, held, planned, outcome, partial.text)
    held.failed_purpose = None
    if not kept:
        emit(ports, held, EventKind.STEP_RESTARTED, step=planned.step, reason=STEERED)
    return Stepped(NO_RUNS)


def _keep(ports: Ports, held: Held, planned: Planned, outcome: Outcome, text: str) -> bool:
    """Record a call that was cut. Whether its text stands."""
    if recording.record(ports, held, planned, outcome).cancel_requested:
        held.interrupt(Interrupt.CANCEL)
    ports.pauses.at(Point.RECORDED)
    if outcome.step_done:
        emit(
            ports, held, EventKind.STEP_FINISHED, step=planned.step, text=text, cut=True,
            cost_usd=None if outcome.cost is None else float(outcome.cost), tokens=conversing.tokens(outcome.usage),
        )  # fmt: skip
    return outcome.step_done


def _stopped(ports: Ports, held: Held, reason: Interrupt | None) -> TurnOutcome:
    """End or hand back a turn at a boundary, where its transcript is whole."""
    match reason:
        case Interrupt.DRAIN | Interrupt.YIELD:
            recording.requeue(ports, held)
            return Released(gave_way=reason is Interrupt.YIELD)
        case Interrupt.CANCEL:
            return _end(ports, held, Ending(TurnStatus.CANCELLED))
        case Interrupt.DEADLINE:
            text = "the turn's time is over: send the rest as a new turn, or give the job a longer deadline"
            return _end(ports, held, Ending(TurnStatus.FAILED, error_code="deadline_passed", error_text=text))
        case Interrupt.LOST:
            raise LeaseLost
        case None:  # a housekeeping turn has folded what there was
            return _end(ports, held, Ending(TurnStatus.DONE))


def _end(ports: Ports, held: Held, ending: Ending) -> Ended:
    recording.end(ports, held, ending)
    return Ended(ending)

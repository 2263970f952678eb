"""What answers the doorbell: claim and run turns until nothing is left that may run here (late binding)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import assert_never
from uuid import UUID, uuid4

import structlog

from shared.errors import LeaseLost, StoreUnavailable
from shared.telling import parent_of
from shared.values import EventKind, TurnClass, TurnStatus
from workers import claiming, drawing, faulting, loop, routing, telling
from workers.emit import emit
from workers.held import Held, Interrupt
from workers.hints import Turns
from workers.outcome import Ended, Parked, Released, TurnOutcome
from workers.pause import Point
from workers.ports import Ports
from workers.sandbox.background import BACKGROUNDS
from workers.turnstile import Turnstile

log = structlog.get_logger("turn")


@dataclass(slots=True)
class Slots:
    """How many turns run here. One slot in eight, at least one where there are two, is kept for `interactive`."""

    size: int
    classes: tuple[TurnClass, ...]
    used: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    turnstile: Turnstile = field(default_factory=Turnstile)

    @property
    def kept(self) -> int:
        return max(1, self.size // 8) if self.size > 1 and TurnClass.INTERACTIVE in self.classes else 0

    @property
    def yields(self) -> bool:
        """With a single slot nothing can be kept: a child or a job hands it over between two of its steps."""
        return self.size == 1 and TurnClass.INTERACTIVE in self.classes

    def take(self) -> tuple[TurnClass, ...]:
        """Take a slot and say which classes it may serve; nothing where none is free."""
        with self.lock:
            if self.used >= self.size:
                return ()
            self.used += 1
            if self.used > self.size - self.kept:
                return (TurnClass.INTERACTIVE,)
            return self.classes

    def give_back(self) -> None:
        with self.lock:
            self.used -= 1


class Ran(Enum):
    """What came of one look for work."""

    NOTHING = auto()
    ONE = auto()
    GAVE_WAY = auto()  # to a question, which is claimed next: by age the turn that was handed back might come before it


def look(ports: Ports, turns: Turns, slots: Slots) -> int:
    """Run turns one after another while any may run. Returns how many ran."""
    ran, last = 0, Ran.ONE
    while ports.life.claims_allowed:
        classes = slots.take()
        if not classes:
            break
        if last is Ran.GAVE_WAY:
            classes = (TurnClass.INTERACTIVE,)
        try:
            found = _run_next(ports, turns, slots, classes)
        finally:
            slots.give_back()
        if found is Ran.NOTHING and last is not Ran.GAVE_WAY:
            break
        ran += found is not Ran.NOTHING
        last = found
    return ran


def _run_next(ports: Ports, turns: Turns, slots: Slots, classes: tuple[TurnClass, ...]) -> Ran:
    name = uuid4()
    turns.begin(name)
    try:
        held = _claim(ports, slots, classes, name)
        if held is None:
            return Ran.NOTHING
        held.gives_way = slots.yields and held.claim.turn_class is not TurnClass.INTERACTIVE
        return _run_claimed(ports, turns, held)
    finally:
        turns.end(name)


def _claim(ports: Ports, slots: Slots, classes: tuple[TurnClass, ...], name: UUID) -> Held | None:
    def ask() -> Held | None:
        """Who waited in line may have waited out an outage, or the order to drain."""
        return claiming.claim_next(ports, classes, name) if ports.life.claims_allowed else None

    try:
        return slots.turnstile.claim(classes, ask)
    except (StoreUnavailable, LeaseLost) as error:
        log.warning("turn.claim_failed", code=error.code)
        return None


def _run_claimed(ports: Ports, turns: Turns, held: Held) -> Ran:
    turns.add(held)
    outcome = None
    try:
        outcome = _drive(ports, held)
    finally:
        turns.remove(held)
        routing.unsent(ports, held)
        if not isinstance(outcome, Parked | Released):
            BACKGROUNDS.end_turn(str(held.claim.turn))
        ports.publisher.forget(held.claim.turn, held.claim.fence)
    return Ran.GAVE_WAY if isinstance(outcome, Released) and outcome.gave_way else Ran.ONE


def _drive(ports: Ports, held: Held) -> TurnOutcome | None:
    """How the turn was left; None where that is no longer this worker's to say."""
    claim = held.claim
    bound = {"turn": str(claim.turn), "session": str(claim.session), "fence": claim.fence}
    log.info(
        "turn.started", attempt=claim.attempts, turn_class=claim.turn_class, waited_s=round(claim.waited_s, 3), **bound
    )
    emit(ports, held, EventKind.TURN_STARTED, attempt=claim.attempts)
    if claim.takeovers or claim.attempts > 1:
        emit(ports, held, EventKind.STEP_RESTARTED, reason="taken_over")
    try:
        claim.workspace.mkdir(parents=True, exist_ok=True)
        if claiming.is_left(ports, held):
            held.interrupt(Interrupt.CANCEL)
        outcome = loop.run_turn(ports, held)
    except (LeaseLost, StoreUnavailable) as late:
        # A database that was away for longer than anybody waits is no fault of the turn: it goes on when that is over.
        log.warning("turn.let_go", code=late.code, **bound)
        return None
    except Exception as error:  # noqa: BLE001 - a fault of ours must cost this turn alone, and its person must hear of it
        ending = faulting.end_in_fault(ports, held, error)
        if ending is None:
            return None
        outcome = Ended(ending)
    _announce(ports, held, outcome)
    telling.turn_left(ports.telemetry, held, _left_as(outcome))
    drawing.give_back(ports, held)
    if isinstance(outcome, Ended) and claim.parent is not None:
        parent_of(ports.database.read, claim.turn, ports.publisher.tell)
    if held.woken is not None and held.woken.turn_class is not None:
        ports.doorbell.ring(held.woken.turn_class)
    ports.pauses.at(Point.FINISHED)
    log.info("turn.ended", outcome=_name(outcome), steps=held.steps_used, **bound)
    return outcome


def _announce(ports: Ports, held: Held, outcome: TurnOutcome) -> None:
    match outcome:
        case Ended(ending):
            error = {"code": ending.error_code, "message": ending.error_text} if ending.error_code else None
            emit(
                ports,
                held,
                EventKind.TURN_FINISHED,
                step=held.step,
                status=ending.status,
                answer=ending.answer,
                error=error,
            )
        case Parked(reason, wait_s, why):
            emit(ports, held, EventKind.TURN_PARKED, reason=reason, wait_s=round(wait_s, 1), why=why)
        case Released():
            ports.publisher.flush()
            ports.doorbell.ring(held.claim.turn_class)
        case _:
            assert_never(outcome)


def _left_as(outcome: TurnOutcome) -> TurnStatus:
    match outcome:
        case Ended(ending):
            return ending.status
        case Parked():
            return TurnStatus.PARKED
        case Released():
            return TurnStatus.QUEUED
        case _:
            assert_never(outcome)


def _name(outcome: TurnOutcome) -> str:
    match outcome:
        case Ended(ending):
            return ending.status
        case Parked(reason):
            return f"parked on {reason}"
        case Released(gave_way):
            return "gave way" if gave_way else "released"

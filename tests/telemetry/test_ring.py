"""To emit never waits, never raises and never loses count; each subscriber is alone with its faults."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from deploy.drill.rig import until
from shared.telemetry.events import Event, ToolName, ToolRan
from shared.telemetry.ring import Telemetry
from shared.values import RunStatus


def event(number: int = 0) -> ToolRan:
    return ToolRan(UUID(int=1), UUID(int=2), number, 0, ToolName.TODO, RunStatus.DONE, 5)


@dataclass
class Taker:
    name: str = "taker"
    steps: list[int] = field(default_factory=list[int])
    gate: threading.Event | None = None
    fails: bool = False

    def take(self, events: Sequence[Event]) -> None:
        if self.gate is not None:
            self.gate.wait(30)
        if self.fails:
            raise RuntimeError("words that nobody reads")
        self.steps += [one.step for one in events if isinstance(one, ToolRan)]


def test_what_is_emitted_from_many_threads_is_taken_once_each() -> None:
    taker = Taker()
    telemetry = Telemetry([taker], size=100_000)

    def emits(base: int) -> None:
        for number in range(2_000):
            telemetry.emit(event(base + number))

    threads = [threading.Thread(target=emits, args=(base,)) for base in range(0, 16_000, 2_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    telemetry.close()
    assert sorted(taker.steps) == list(range(16_000))
    assert telemetry.dropped == 0


def test_a_full_buffer_drops_the_oldest_and_counts_it() -> None:
    gate = threading.Event()
    taker = Taker(gate=gate)
    telemetry = Telemetry([taker], size=100)
    telemetry.emit(event(-1))
    until(lambda: telemetry._feeds[0]._taken == 1, 10, "the one that blocks the subscriber")
    for number in range(1_000):
        telemetry.emit(event(number))
    gate.set()
    telemetry.close()
    assert taker.steps == [-1, *range(900, 1_000)]
    assert telemetry.dropped == 900


def test_one_that_fails_and_one_that_hangs_cost_the_others_nothing() -> None:
    gate = threading.Event()
    failing, hanging, well = Taker("failing", fails=True), Taker("hanging", gate=gate), Taker("well")
    telemetry = Telemetry([failing, hanging, well])
    for number in range(10):
        telemetry.emit(event(number))
    until(lambda: well.steps == list(range(10)), 10, "the one that works")
    until(lambda: telemetry.failures > 0, 10, "the failure, counted")
    telemetry.emit(event(10))
    until(lambda: well.steps == list(range(11)), 10, "the next event")
    until(lambda: telemetry.failures > 1, 10, "its next call, all the same")
    gate.set()
    telemetry.close()


def test_without_subscribers_nothing_is_kept() -> None:
    telemetry = Telemetry()
    telemetry.emit(event())
    assert (telemetry.dropped, telemetry._feeds) == (0, ())

"""Claims pass one at a time, and one that finds nothing speaks for those who wait behind it, for nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator

import pytest

from shared.values import TurnClass
from tests.ground import until
from workers.turnstile import Turnstile

EVERY = tuple(TurnClass)
INTERACTIVE = (TurnClass.INTERACTIVE,)


class Crowd:
    """One claim at the turnstile that goes on when told, and what the others came to."""

    def __init__(self) -> None:
        self.turnstile = Turnstile(self._tick)
        self.ticks = 0
        self._ticking = threading.Lock()
        self.go = threading.Event()
        self.asked: list[str] = []
        self.threads: list[threading.Thread] = []
        self.found: dict[str, str | None] = {}

    def _tick(self) -> float:
        """Everybody who comes looks at the clock once, and once more when it is their turn to ask."""
        with self._ticking:
            self.ticks += 1
            return self.ticks

    def come(self, name: str, classes: tuple[TurnClass, ...], answer: Callable[[], str | None]) -> threading.Thread:
        def ask() -> str | None:
            self.asked.append(name)
            self.go.wait(10)
            return answer()

        def claim() -> None:
            try:
                self.found[name] = self.turnstile.claim(classes, ask)
            except RuntimeError as error:
                self.found[name] = str(error)

        thread = threading.Thread(target=claim)
        thread.start()
        self.threads.append(thread)
        return thread

    def all_through(self) -> list[str]:
        """Who asked, once everybody is through."""
        self.go.set()
        for thread in self.threads:
            thread.join(10)
        return self.asked


@pytest.fixture
def crowd() -> Generator[Crowd]:
    made = Crowd()
    yield made
    made.all_through()


def nothing() -> str | None:
    return None


def fails() -> str | None:
    raise RuntimeError("no database")


def test_of_those_who_wait_one_asks_and_answers_for_the_rest(crowd: Crowd) -> None:
    """The first began before the others came: what they were rung for it need not have seen."""
    crowd.come("first", EVERY, nothing)
    until(lambda: crowd.asked == ["first"], 5, "the first claim")
    crowd.come("second", EVERY, nothing)
    crowd.come("third", EVERY, nothing)
    until(lambda: crowd.ticks == 4, 5, "the others in line")
    assert len(crowd.all_through()) == 2
    assert crowd.found == {"first": None, "second": None, "third": None}


def test_who_comes_later_asks_anew(crowd: Crowd) -> None:
    crowd.go.set()
    for name in ("first", "second"):
        crowd.come(name, EVERY, nothing).join(10)
    assert crowd.asked == ["first", "second"]


def test_a_claim_of_fewer_classes_says_nothing_of_the_others(crowd: Crowd) -> None:
    crowd.come("first", EVERY, lambda: "a turn")
    until(lambda: crowd.asked == ["first"], 5, "the first claim")
    crowd.come("second", INTERACTIVE, nothing)
    crowd.come("third", EVERY, lambda: "a job")
    until(lambda: crowd.ticks == 4, 5, "the others in line")
    assert set(crowd.all_through()) >= {"first", "third"}
    assert (crowd.found["first"], crowd.found["third"]) == ("a turn", "a job")


def test_a_claim_that_failed_answers_for_nobody(crowd: Crowd) -> None:
    crowd.come("first", EVERY, fails)
    until(lambda: crowd.asked == ["first"], 5, "the first claim")
    crowd.come("second", EVERY, fails)
    crowd.come("third", EVERY, fails)
    until(lambda: crowd.ticks == 4, 5, "the others in line")
    assert sorted(crowd.all_through()) == ["first", "second", "third"]
    assert set(crowd.found.values()) == {"no database"}

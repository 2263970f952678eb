"""Several works at once for one thread that waits: none is lost, none goes on behind it."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from workers import abreast


def test_eight_works_are_at_work_at_the_same_moment() -> None:
    """Each waits for all the others: one after the other, none would come to its end."""
    meeting = threading.Barrier(abreast.MOST)

    def work(at: int) -> int:
        meeting.wait(30)
        return at * at

    ended = sorted(abreast.ends([partial(work, at) for at in range(8)], threading.Event()))
    assert ended == [(at, at * at) for at in range(8)]


def test_more_works_than_may_run_at_once_all_run_and_never_more_than_that() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def work(at: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        with lock:
            now -= 1
        return at

    assert sorted(abreast.ends([partial(work, at) for at in range(100)], threading.Event())) == [
        (at, at) for at in range(100)
    ]
    assert most <= abreast.MOST


def test_each_end_is_told_as_it_comes() -> None:
    told = threading.Event()

    def slow() -> str:
        assert told.wait(30)
        return "slow"

    came: list[str] = []
    for _, what in abreast.ends([slow, lambda: "quick"], threading.Event()):
        came.append(what)
        told.set()
    assert came == ["quick", "slow"]


def test_a_single_work_runs_on_the_thread_that_waits() -> None:
    assert list(abreast.ends([threading.get_ident], threading.Event())) == [(0, threading.get_ident())]


def test_what_one_raises_is_raised_when_all_have_ended() -> None:
    ended: list[str] = []

    def fails() -> str:
        raise OSError("one of them")

    def other() -> str:
        ended.append("other")
        return "other"

    came: list[tuple[int, str]] = []
    with pytest.raises(OSError, match="one of them"):
        came.extend(abreast.ends([fails, other, other], threading.Event()))
    assert ended == ["other"] * 2


def test_who_waits_no_more_leaves_nothing_at_work() -> None:
    gone, stopped = threading.Event(), list[int]()
    all_four = threading.Barrier(4)

    def works(at: int) -> int:
        all_four.wait(30)
        assert gone.wait(30)
        stopped.append(at)
        return at

    def quick() -> int:
        all_four.wait(30)
        return -1

    ends = abreast.ends([quick, partial(works, 1), partial(works, 2), partial(works, 3)], gone)
    assert next(ends) == (0, -1)
    ends.close()
    assert sorted(stopped) == [1, 2, 3]
    assert not [thread for thread in threading.enumerate() if thread.name == "tool-run"]

"""A rewind whose reply is lost, and one that meets new words: it is made once, and before them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from deploy.drill.swallow import Loss, Proxy
from shared.errors import Refused
from tests.ground import Ground, Rehearsal, lossy_ground
from tests.shrink.travel import ask_rewind, broken, came_of, said, shown

EDIT = b"insert into edits (session, kind, first, last, cause, tokens_before"


@pytest.fixture
def lossy(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[tuple[Ground, Proxy]]:
    provider.reset()
    with lossy_ground(database_url, redis_url, provider.url, tmp_path) as made:
        yield made


@pytest.mark.parametrize("loss", list(Loss))
def test_a_rewind_is_made_once_though_the_reply_to_it_is_lost(
    lossy: tuple[Ground, Proxy], provider: Rehearsal, loss: Loss
) -> None:
    worker, proxy = lossy
    session = worker.session()
    said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    made = ask_rewind(worker, session, second)
    proxy.lose((EDIT,), loss)
    worker.look()
    assert proxy.lost == 1
    found = came_of(worker, session, made)
    assert (found["outcome"], found["turn_status"]) == ({"result": "done"}, "done")
    assert len(worker.rows("select 1 from edits where session = %s and kind = 'rewind'", session)) == 1
    said(worker, provider, session, "third", "three")
    assert shown(worker, session) == ["first", "one", "third", "three"]
    assert broken(worker, session) == 0


def test_of_words_and_a_rewind_at_the_same_moment_either_comes_first_and_none_is_lost(
    worker: Ground, provider: Rehearsal
) -> None:
    """The rewind is refused because a turn is queued, or is done before that turn begins; never is the turn taken back
    that was sent after it was asked for."""
    for _ in range(6):
        _race(worker, provider)


def _race(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    provider.script([{"text": "three"}], session=str(session))
    gate = threading.Barrier(2)
    codes: list[str] = []

    def take_back() -> None:
        gate.wait()
        try:
            ask_rewind(worker, session, second)
        except Refused as refused:
            codes.append(refused.code)

    thread = threading.Thread(target=take_back)
    thread.start()
    gate.wait()
    worker.turn(session, "third")
    thread.join()
    worker.look()
    assert codes in ([], ["session_busy"])
    stood = ["first", "one", "second", "two"] if codes else ["first", "one"]
    assert shown(worker, session) == [*stood, "third", "three"]

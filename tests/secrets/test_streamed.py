"""What the model writes holds no known key, as it streams and as it is stored: also one that came in two deltas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared import redact
from shared.redact import TAKEN_OUT, WITHHELD, Flow, Redactor
from shared.settings import Settings
from tests.ground import Ground, Rehearsal
from workers.manners.fleet import Fleet
from workers.providers import arguments, pieces, routes
from workers.providers.pieces import Pieces
from workers.providers.routes import Routes

KEY = "team-key-0123456789"
Learn = Callable[..., None]
"""These keys are known from here on."""


@pytest.fixture
def knows(monkeypatch: pytest.MonkeyPatch) -> Learn:
    """This process knows these keys, for a test."""

    def learn(*keys: str) -> None:
        known = Redactor(keys)
        monkeypatch.setattr(pieces, "REDACTOR", known)
        monkeypatch.setattr(arguments, "REDACTOR", known)

    return learn


def shown(made: Pieces, deltas: Sequence[str]) -> list[str]:
    return [*map(made.add, deltas), made.close()]


@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_key_that_comes_in_two_deltas_is_taken_out_wherever_it_is_cut(knows: Learn, at: int) -> None:
    knows(KEY)
    made = Pieces()
    told = shown(made, [f"it is {KEY[:at]}", f"{KEY[at:]}, so"])
    assert told[0] == "it is "
    assert "".join(told) == made.text() == f"it is {TAKEN_OUT}, so"
    assert made.raw() == f"it is {KEY}, so"


def test_text_that_no_key_begins_so_is_shown_at_once(knows: Learn) -> None:
    knows(KEY)
    assert shown(Pieces(), ["the team", " met ", "\u4e00\u4e8c"]) == ["the ", "team met ", "\u4e00\u4e8c", ""]


def test_what_was_kept_back_is_shown_at_the_end(knows: Learn) -> None:
    knows(KEY)
    assert shown(Pieces(), ["ask the team-key-0123"]) == ["ask the ", "team-key-0123"]


def test_of_two_keys_that_share_their_beginning_the_longer_is_awaited(knows: Learn) -> None:
    knows("abcdefgh", "abcdefghij")
    assert "".join(shown(Pieces(), ["abcdefgh", "ij!"])) == f"{TAKEN_OUT}!"
    assert "".join(shown(Pieces(), ["abcdefgh", "ix!"])) == f"{TAKEN_OUT}ix!"


def test_a_key_whose_end_is_its_beginning_is_not_cut_in_two(knows: Learn) -> None:
    knows("abcxyzabc")
    assert "".join(shown(Pieces(), ["abcxyzabc", " and more"])) == f"{TAKEN_OUT} and more"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("abc", min_size=8, max_size=12), min_size=1, max_size=4),
    st.text("abc", max_size=80),
    st.lists(st.integers(0, 80), max_size=8),
)
def test_however_it_is_cut_what_is_shown_is_the_whole_without_keys(keys: list[str], text: str, cuts: list[int]) -> None:
    redactor = Redactor(keys)
    flow = Flow(redactor)
    at = [0, *sorted(cuts), len(text)]
    told = [flow.add(text[start:end]) for start, end in pairwise(at)]
    assert "".join([*told, flow.close()]) == redactor.without_known(text)


def test_a_call_is_stored_shown_and_run_without_the_key(knows: Learn) -> None:
    knows('k"ey-with-a-quote')
    head: dict[str, Any] = {"id": "toolu_1", "name": "terminal"}
    call = arguments.checked_call(head, '{"command":"echo k\\"ey-with-a-quote"}', taken=set(), seed="s")
    assert (call.arguments_text, call.malformed) == (f'{{"command":"echo {TAKEN_OUT}"}}', None)


def test_if_it_cannot_be_looked_through_nothing_of_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Redactor, text: str) -> int:
        raise RuntimeError(text)

    monkeypatch.setattr(redact.Redactor, "safe_up_to", fails)
    flow = Flow(Redactor((KEY,)))
    assert (flow.add(f"it is {KEY}"), flow.close()) == (WITHHELD, "")


def test_a_turn_streams_and_stores_no_key_and_runs_no_call_with_it(
    knows: Learn, worker: Ground, provider: Rehearsal
) -> None:
    knows(KEY)
    session = worker.session()
    words = f"the key is {KEY} and here it is again: {KEY}"
    write = {"name": "write_file", "input": {"path": "a.txt", "content": f"k = {KEY}\n"}}
    provider.script([{"text": words, "tools": [write]}, {"text": f"I wrote {KEY}"}], session=str(session))
    turn = worker.turn(session, "write it")
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["answer"]) == ("done", f"I wrote {TAKEN_OUT}")
    events = worker.events(turn)
    streamed = "".join(event.data["text"] for event in events if event.kind == "text.delta")
    assert streamed == f"the key is {TAKEN_OUT} and here it is again: {TAKEN_OUT}I wrote {TAKEN_OUT}"
    assert KEY not in str(events)
    rows = worker.rows("select content, sent, blocks from messages where session = %s", session)
    assert KEY not in str([*rows, *worker.rows("select arguments, result from tool_runs where turn = %s", turn)])
    assert [path.read_text("utf-8") for path in (worker.home / "ws").rglob("a.txt")] == [f"k = {TAKEN_OUT}\n"]


def test_a_providers_key_that_is_exchanged_while_a_worker_runs_is_known_from_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bedrock's are for an hour; their secret and session token look like nothing that a key is known by."""
    known = Redactor(())
    monkeypatch.setattr(routes, "REDACTOR", known)
    file = tmp_path / "keys" / "bedrock" / "a"
    file.parent.mkdir(parents=True)
    made = Routes(Settings(home=tmp_path), Fleet(None, lambda: 1), {})
    for nth in range(2):
        secret, token = f"{nth}secretOfTheHour" * 2, f"{nth}tokenOfTheHour" * 4
        file.write_text(f"ASIAABCDEFGH{nth}:{secret}:{token}")
        file.chmod(0o600)
        assert len(made.pool("bedrock", anew=True)) == 1
        assert known.without_known(f"{secret}, {token}") == f"{TAKEN_OUT}, {TAKEN_OUT}"

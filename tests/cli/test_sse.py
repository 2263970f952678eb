"""Reading server-sent events from a stream that may be cut anywhere."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from api.cli.fold import Event
from api.cli.sse import lines, parse

STREAM = (
    ': keep-alive\r\n\r\nevent: text.delta\r\nid: 1.2.3\r\ndata: {"step": 1, "text": "a\u2028b\x85c"}\r\n\r\n'
    'event: turn.finished\nid: 1.2.4\ndata: {"status":\ndata: "done"}\n\n'
).encode()
EVENTS = [
    Event("1.2.3", "text.delta", {"step": 1, "text": "a\u2028b\x85c"}),
    Event("1.2.4", "turn.finished", {"status": "done"}),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(edges)]
    assert list(parse(lines(chunks))) == EVENTS


@given(st.integers(0, len(STREAM)))
def test_an_event_that_was_cut_off_does_not_count(end: int) -> None:
    found = list(parse(lines([STREAM[:end]])))
    assert found == EVENTS[: len(found)]


def test_data_that_is_no_json_object_is_left_out() -> None:
    assert list(parse(["data: nonsense", "", "data: [1]", "", "data: {}", ""])) == [Event("", "message", {})]

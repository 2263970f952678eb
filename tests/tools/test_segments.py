"""Which calls of one batch may overlap: a table, and what holds for any batch."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.tools.segments import Touched, area, meet, segments, together


def reads(*paths: str) -> Touched:
    return Touched(reads=tuple(area(path.split("/")) for path in paths))


def writes(*paths: str) -> Touched:
    return Touched(writes=tuple(area(path.split("/")) for path in paths))


ALONE = None
NOTHING = Touched()


@pytest.mark.parametrize(
    ("calls", "cut"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([ALONE], [1], id="a-call-that-runs-alone"),
        pytest.param([reads("a"), reads("a"), reads("b")], [3], id="readers-commute"),
        pytest.param([reads("a"), writes("a")], [1, 1], id="a-write-waits-for-the-read"),
        pytest.param([writes("a"), reads("a")], [1, 1], id="a-read-sees-the-write-before-it"),
        pytest.param([writes("a"), writes("a")], [1, 1], id="two-writes-of-one-file"),
        pytest.param([writes("a"), writes("b"), reads("c")], [3], id="other-files"),
        pytest.param([writes("a/b"), reads("a")], [1, 1], id="a-search-reserves-its-root"),
        pytest.param([reads("a"), writes("a/b/c")], [1, 1], id="a-write-below-what-is-searched"),
        pytest.param([writes("a/b"), writes("a/c")], [2], id="neighbours-in-one-folder"),
        pytest.param([writes("ab"), reads("a")], [2], id="a-name-that-begins-like-another"),
        pytest.param([writes("A/ß"), reads("a/SS")], [1, 1], id="names-that-differ-in-case"),
        pytest.param([writes("caf\u00e9"), reads("cafe\u0301")], [1, 1], id="composed-and-not"),
        pytest.param([reads("a"), ALONE, reads("a")], [1, 1, 1], id="nothing-is-moved-past-a-barrier"),
        pytest.param([ALONE, ALONE], [1, 1], id="barriers-one-by-one"),
        pytest.param([NOTHING, writes("a"), NOTHING, ALONE], [3, 1], id="what-touches-nothing"),
        pytest.param([reads("a"), reads("b"), writes("b"), reads("a"), reads("c")], [2, 3], id="a-cut-in-the-middle"),
        pytest.param([writes("a"), reads("b"), writes("b"), reads("a")], [2, 2], id="no-reader-is-moved-forward"),
    ],
)
def test_a_batch_is_cut_where_order_matters(calls: list[Touched | None], cut: list[int]) -> None:
    assert [len(one) for one in segments(calls)] == cut


_AREA = st.lists(st.sampled_from("abA"), min_size=1, max_size=3).map(area)
_TOUCHED = st.none() | st.builds(
    Touched, st.lists(_AREA, max_size=2).map(tuple), st.lists(_AREA, max_size=2).map(tuple)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_TOUCHED, max_size=12))
def test_any_batch_is_whole_in_order_and_without_a_meeting_inside_a_segment(calls: list[Touched | None]) -> None:
    cut = segments(calls)
    assert [at for one in cut for at in one] == list(range(len(calls)))
    for one in cut:
        inside = [calls[at] for at in one]
        if len(inside) == 1:
            continue
        known = [call for call in inside if call is not None]
        assert len(known) == len(inside)
        assert not any(meet(a, b) for at, a in enumerate(known) for b in known[at + 1 :])
    for one, following in pairwise(cut):  # no segment ends for nothing
        grown = [*(calls[at] for at in one), calls[following.start]]
        assert together(grown) == len(one)


@given(st.lists(_TOUCHED, min_size=2, max_size=2))
def test_a_meeting_is_mutual(pair: list[Touched | None]) -> None:
    one, other = (call or NOTHING for call in pair)
    assert meet(one, other) is meet(other, one)

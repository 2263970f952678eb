"""The estimate meets blocks that nobody here wrote."""

from __future__ import annotations

from shared.request import estimate


def test_a_long_block_whose_type_does_not_come_first_is_weighed() -> None:
    unit = b'{"thinking":"%s","type":"thinking","signature":"s"}' % (b"x" * 5000)
    assert estimate.weigh_units([unit]) > 0


def test_bytes_that_are_no_block_are_weighed_too() -> None:
    assert estimate.weigh_units([b"not json at all" * 100]) > 0

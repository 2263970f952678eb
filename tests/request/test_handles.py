"""Handles: written and read by one grammar, and nothing else is one."""

from __future__ import annotations

from uuid import UUID

import pytest

from shared.request import handles
from shared.request.handles import Artifact, Block

ID = UUID("019af000-0000-7000-8000-000000000001")


def test_what_is_written_is_read_back() -> None:
    assert handles.parse(handles.artifact(ID)) == Artifact(ID)
    assert handles.parse(f"  {handles.result(12, 3)}\n") == Block(12, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "artifact:",
        f"artifact: {ID}",
        f"artifact:{ID.hex}",
        f"artifact:{ID}x",
        "result:12",
        "result:12.",
        "result:-1.0",
        "result:1.-1",
        "result:9223372036854775808.0",
        "result:1.0.0",
        "result:\u0661.0",
        "result:1.0\x00",
        "message:1",
        "1.0",
    ],
)
def test_what_is_no_handle_is_none(text: str) -> None:
    assert handles.parse(text) is None

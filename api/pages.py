"""Lists in pages: `{items, next}`. A cursor is opaque to who sends it back; it holds the order key of the last row."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Query

from api.problems import invalid

DEFAULT, MOST = 50, 200
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=MOST)]
_MARK = "k:"


def encode(key: int) -> str:
    return base64.urlsafe_b64encode(f"{_MARK}{key}".encode()).decode().rstrip("=")


def decode(cursor: str | None, default: int) -> int:
    """The key that a cursor holds. Raises Refused `cursor_invalid` (422) for what no page gave out."""
    if cursor is None:
        return default
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise _wrong() from error
    digits = text.removeprefix(_MARK)
    if not text.startswith(_MARK) or not digits.isdecimal() or len(digits) > 18:
        raise _wrong()
    return int(digits)


def _wrong() -> Exception:
    return invalid("cursor", "it is not one that a page gave out: begin without it", code="cursor_invalid")

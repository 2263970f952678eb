"""Reads lists that the API gives page by page. A page is `{items, next}`; `next` is the cursor of the following one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from api.cli.client import Client

Row = dict[str, Any]
_MOST_PAGES = 10_000


def rows(client: Client, path: str, *, limit: int | None = None, **query: object) -> Iterator[Row]:
    """Rows of all pages, at most `limit` of them."""
    cursor: object = None
    left = limit
    for _ in range(_MOST_PAGES):
        page: object = client.get(path, cursor=cursor, limit=None if left is None else min(left, 200), **query)
        found = items(page)
        yield from found if left is None else found[:left]
        if left is not None:
            left -= len(found)
        cursor = cast("Row", page).get("next") if isinstance(page, dict) else None
        if not cursor or not found or (left is not None and left <= 0):
            return


def items(page: Any) -> list[Row]:
    """The rows of one page."""
    found: Any = cast("Row", page).get("items", []) if isinstance(page, dict) else page
    return cast("list[Row]", found) if isinstance(found, list) else []

"""The tool `read_artifact`: a long text that the conversation holds only a line of, read by its handle, page by page.

A page is itself never spilled: it would be a handle of a handle. So it is bounded, and shortened where the window has
less room. A stub of an old page names the
handle that was read.
"""

from __future__ import annotations

import re
from dataclasses import replace

from shared.request import handles
from shared.store import handled, search
from shared.store.handled import Page
from shared.store.pool import Connection
from shared.values import Repeat
from workers.tools.context import Arguments, Store, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Thing, Touch, always

PAGE = 20_000
_CAP = PAGE + 1_000
_NOTE = re.compile(r"characters (\d+)-\d+ of (\d+)")


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The page; where it is not all, a last line `[characters A-B of N; read on with offset=B]`."""
    asked = text(arguments, "handle", "")
    handle = handles.parse(asked)
    if handle is None:
        raise ToolRefused(
            "that is no handle: it is artifact:<id> or result:<message>.<block>, as a line of ours names it"
        )
    first = integer(arguments, "offset", 0)
    page = _read(store_of(context), handle, first)
    if page is None:
        raise ToolRefused("there is nothing under that handle that this conversation may read")
    if first > 0 and not page.text:
        raise ToolRefused(f"offset {first} is past the end: there are {page.total} characters")
    return _told(page)


def shortened(result: ToolResult, most: int) -> ToolResult:
    """The same page with at most so many characters, and a last line that says where it ends now."""
    text, first, total = result.text, 0, len(result.text)
    if result.is_error:
        return replace(result, text=text[:most])
    if result.note is not None and (found := _NOTE.match(result.note)):
        text = text.removesuffix(_line(result.note))
        first, total = int(found[1]), int(found[2])
    return _told(Page(text[:most], first, total))


def _told(page: Page) -> ToolResult:
    if (page.first, page.end) == (0, page.total):
        return ToolResult(page.text)
    more = f"; read on with offset={page.end}" if page.end < page.total else ""
    note = f"characters {page.first}-{page.end} of {page.total}{more}"
    return ToolResult(page.text + _line(note), note=note)


def _line(note: str) -> str:
    return f"\n[{note}]"


def _read(store: Store, handle: handles.Handle, first: int) -> Page | None:
    def read(connection: Connection) -> Page | None:
        scope = search.scope_of(connection, store.session, store.turn)
        return None if scope is None else handled.read(connection, handle, scope, first, PAGE)

    return store.database.read(read)


TOOL = Tool(
    name="read_artifact",
    description=(
        "Read a long text by the handle that stands in its place: artifact:<id> or result:<message>.<block>. "
        f"Up to {PAGE:,} characters at once."
    ),
    schema={
        "type": "object",
        "properties": {
            "handle": {"type": "string"},
            "offset": {"type": "integer", "minimum": 0, "description": "first character, from 0"},
        },
        "required": ["handle"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    touches=always(Touch(reads=(Thing("conversations"),))),
)

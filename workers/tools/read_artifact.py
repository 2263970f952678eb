"""The tool `read_artifact`: a long text that the conversation holds only a line of, read by its handle, page by page.

A page is itself never spilled: it would be a handle of a handle. So it is bounded. A stub of an old page names the
handle that was read.
"""

from __future__ import annotations

from shared.request import handles
from shared.store import handled, search
from shared.store.pool import Connection
from shared.values import Repeat
from workers.tools.context import Arguments, Store, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Thing, Touch, always

PAGE = 20_000
_CAP = PAGE + 1_000


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The page; where it is not all, a last line `[characters A-B of N; read on with offset=B]`."""
    asked = text(arguments, "handle", "")
    handle = handles.parse(asked)
    if handle is None:
        raise ToolRefused(
            "that is no handle: it is artifact:<id> or result:<message>.<block>, as a line of ours names it"
        )
    whole = _read(store_of(context), handle)
    if whole is None:
        raise ToolRefused("there is nothing under that handle that this conversation may read")
    first = integer(arguments, "offset", 0)
    if first >= len(whole) > 0 or (first > 0 and not whole):
        raise ToolRefused(f"offset {first} is past the end: there are {len(whole)} characters")
    last = min(len(whole), first + PAGE)
    page = whole[first:last]
    if (first, last) == (0, len(whole)):
        return ToolResult(page)
    note = f"characters {first}-{last} of {len(whole)}" + (f"; read on with offset={last}" if last < len(whole) else "")
    return ToolResult(f"{page}\n[{note}]", note=note)


def _read(store: Store, handle: handles.Handle) -> str | None:
    def read(connection: Connection) -> str | None:
        scope = search.scope_of(connection, store.session, store.turn)
        return None if scope is None else handled.read(connection, handle, scope)

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

"""What a handle names, as text; None where there is no such thing for those who ask.

The whole text is read at each page: it lies compressed in one value, of which no part can be read alone.
"""

from __future__ import annotations

from shared.request import blocks, handles
from shared.request.handles import Artifact, Handle
from shared.store.pool import Connection
from shared.store.search import Scope
from shared.store.statements import one, recall


def read(connection: Connection, handle: Handle, scope: Scope) -> str | None:
    """The text of an artifact, or of one block of a message as it was stored: what a person reads, not what went out
    with warnings behind it."""
    values = {"readers": list(scope.readers), "child": scope.child}
    if isinstance(handle, Artifact):
        values |= {"id": handle.id, "handle": handles.artifact(handle.id)}
        row = one(connection, recall.READ_ARTIFACT, values)
        return None if row is None else bytes(row["body"]).decode("utf-8", "replace")
    values |= {"id": handle.message, "handle": handles.result(handle.message, handle.block)}
    row = one(connection, recall.READ_MESSAGE, values)
    if row is None:
        return None
    stored = blocks.split(row["content"])
    return _text(stored[handle.block]) if handle.block < len(stored) else None


def _text(block: str) -> str:
    """A call's arguments as they were written; of a picture and the like there is no text, only the block."""
    match blocks.kind(block):
        case "text" | "tool_result":
            return blocks.text_of(block)
        case "tool_use":
            _, found, rest = block.partition(',"input":')  # which no id and no name can hold: their quotes are escaped
            return rest[:-1] if found else block
        case _:
            return block

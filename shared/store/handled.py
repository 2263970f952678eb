"""What a handle names, page by page; None where there is no such thing for those who ask.

Of an artifact the database reads the page alone. A message's blocks are one JSON text, which is read whole: what is
long in it is an artifact of its own (workers/spill.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.request import blocks, handles
from shared.request.handles import Artifact, Handle
from shared.store.pool import Connection
from shared.store.search import Scope
from shared.store.statements import one, recall

FURTHEST = 2**31 - 2
"""No text that the store can hold has a character behind it."""


@dataclass(frozen=True, slots=True)
class Page:
    """Characters of a text from `first` on, counted from 0; `total` is how many the whole has."""

    text: str
    first: int
    total: int

    @property
    def end(self) -> int:
        return self.first + len(self.text)


def read(connection: Connection, handle: Handle, scope: Scope, first: int, most: int) -> Page | None:
    """Up to `most` characters of an artifact, or of one block of a message as it was stored: what a person reads, not
    what went out with warnings behind it. An empty page where `first` is past the end."""
    values = {"readers": list(scope.readers), "child": scope.child}
    if isinstance(handle, Artifact):
        values |= {"id": handle.id, "handle": handles.artifact(handle.id)}
        row = one(connection, recall.READ_ARTIFACT, values | {"first": min(first, FURTHEST - most), "most": most})
        return None if row is None else Page(row["page"], first, row["total"])
    values |= {"id": handle.message, "handle": handles.result(handle.message, handle.block)}
    row = one(connection, recall.READ_MESSAGE, values)
    if row is None:
        return None
    stored = blocks.split(row["content"])
    if handle.block >= len(stored):
        return None
    text = _text(stored[handle.block])
    return Page(text[first : first + most], first, len(text))


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

"""The one grammar of handles: what stands in a stub or a summary in place of a long text, and names where it is whole.

`artifact:<uuid>` is a row of artifacts; `result:<message>.<block>` is a block of a message's stored content, by index.
A handle is a name and no right: whoever reads it must be allowed to see the session that it lies in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

MOST_ID = 2**63 - 1
_ARTIFACT = re.compile(r"artifact:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_RESULT = re.compile(r"result:([0-9]{1,19})\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Artifact:
    id: UUID


@dataclass(frozen=True, slots=True)
class Block:
    """`block` counts from 0 in the message's stored content."""

    message: int
    block: int


Handle = Artifact | Block


def artifact(id_: UUID) -> str:
    return f"artifact:{id_}"


def result(message: int, block: int) -> str:
    return f"result:{message}.{block}"


def parse(text: str) -> Handle | None:
    """What the text names, or None where it is no handle. Blanks around it do not matter."""
    text = text.strip()
    if found := _ARTIFACT.fullmatch(text):
        return Artifact(UUID(found.group(1)))
    if (found := _RESULT.fullmatch(text)) and int(found.group(1)) <= MOST_ID:
        return Block(int(found.group(1)), int(found.group(2)))
    return None

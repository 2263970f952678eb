"""Owns the cutting of our blocks into what other wires are written of. Invariant: a call's arguments keep the
characters that the model wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from shared.request import blocks, canonical
from shared.request.dialect import SEALED, Dialect

NAME_LIMIT = 64
"""Of a tool's name on the other wires."""
FAILED = "[the tool failed] "
"""Stands before the text of a result that is an error: these wires have no flag for it."""
PICTURE = "(a picture; it follows)"
_OURS = re.compile(r'\{"type":"tool_use","id":"(?:[^"\\]|\\.)*","name":"(?:[^"\\]|\\.)*","input":(.*)\}', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """`url` is an address or a `data:` URL."""

    url: str


@dataclass(frozen=True, slots=True)
class Asked:
    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answered:
    call: str
    text: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Sealed:
    """`value` is JSON as parsed; its keys keep their order."""

    key: str
    value: object
    call: str | None


Part = Said | Picture | Asked | Answered | Sealed


def part(block_text: str, dialect: Dialect) -> Part | None:
    """A block, or None where this wire may not see it: signed reasoning of another."""
    value = blocks.parse(block_text)
    match value:
        case {"type": "text", "text": str(text)}:
            return Said(text)
        case {"type": "tool_use", "id": str(call), "name": str(name)}:
            return Asked(dialect.call_id(call), name[:NAME_LIMIT], _arguments(block_text, value))
        case {"type": "tool_result", "tool_use_id": str(call)}:
            return _answered(dialect.call_id(call), value)
        case {"type": "image"}:
            return _picture(value) or Said("(a picture that cannot be shown here)")
        case {"type": "thinking" | "redacted_thinking"}:
            return None
        case {"type": "sealed", "by": str(by), "key": str(key)}:
            call = value.get("call")
            told = dialect.call_id(call) if isinstance(call, str) else None
            return Sealed(key, value.get("value"), told) if by == dialect.by else None
        case _:
            return Said(f"({value.get('type')}: it cannot be shown here)")


def seal(by: str, key: str, value: object, call: str | None = None) -> str:
    """A block that goes back to `by` and nobody else."""
    head: dict[str, object] = {"type": SEALED, "by": by, "key": key}
    return canonical.dump({**head, **({"call": call} if call is not None else {}), "value": value})


def _arguments(block_text: str, value: dict[str, object]) -> str:
    """The text between the braces as it stands: parsed and dumped again, 1e2 becomes 100.0 and breaks the prefix."""
    found = _OURS.fullmatch(block_text)
    if found is not None:
        try:
            canonical.load_object(found.group(1))
        except ValueError:
            pass
        else:
            return found.group(1)
    return canonical.dump(value.get("input") or {})


def _answered(call: str, value: dict[str, object]) -> Answered:
    content = value.get("content")
    parts = cast("list[dict[str, object]]", content) if isinstance(content, list) else []
    pictures = [found for one in parts if one.get("type") == "image" and (found := _picture(one))]
    texts = [str(one.get("text")) if one.get("type") == "text" else PICTURE for one in parts]
    text = content if isinstance(content, str) else "\n".join(texts)
    return Answered(
        call, (FAILED if value.get("is_error") is True else "") + (text or blocks.NO_OUTPUT), tuple(pictures)
    )


def _picture(value: dict[str, object]) -> Picture | None:
    match cast("Any", value.get("source")):
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return Picture(f"data:{kind};base64,{data}")
        case {"type": "url", "url": str(url)}:
            return Picture(url)
        case _:
            return None

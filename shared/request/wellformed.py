"""Owns the question whether a transcript may be sent as it is, answered at the price of what is new since last time.

Invariant: `grown` says yes only to what `repair.repair` would give back unchanged (a test holds the two together).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from shared.request import blocks
from shared.request.assembled import Piece


@dataclass(slots=True)
class Known:
    """What is known of the pieces judged so far. Belongs to one thread; good as long as those pieces stay the same."""

    count: int = 0
    newest: Piece | None = None
    role: str | None = None
    open: set[str] = field(default_factory=set[str])
    ids: set[str] = field(default_factory=set[str])
    past_results: bool = False
    last_kind: str = ""


def grown(known: Known, pieces: Sequence[Piece]) -> bool:
    """Whether `pieces`, which begin with those that `known` has judged, may be sent as they are. After a no, `known` is
    spent and must be thrown away."""
    if known.count > len(pieces) or (known.count and pieces[known.count - 1] is not known.newest):
        return False
    for piece in pieces[known.count :]:
        if not _piece(known, piece):
            return False
        known.count += 1
        known.newest = piece
    return known.role == "user" and not known.open


def _piece(known: Known, piece: Piece) -> bool:
    if piece.role != known.role and not _turn(known, piece.role):
        return False
    return bool(piece.blocks) and all(_block(known, block) for block in piece.blocks)


def _turn(known: Known, role: str) -> bool:
    """Another role begins: the message before it must be whole."""
    whole = role == "user" if known.role is None else not known.open or known.role == "assistant"
    if known.role == "assistant" and known.last_kind in ("thinking", "redacted_thinking", "sealed"):
        whole = False
    known.role = role
    known.past_results = False
    return whole


def _block(known: Known, block: str) -> bool:
    try:
        value = blocks.parse(block)
    except ValueError:
        return False
    kind = value.get("type")
    known.last_kind = str(kind)
    if kind != "tool_result" and known.role == "user":
        known.past_results = True
    match known.role, kind:
        case _, "text":
            text = value.get("text")
            return isinstance(text, str) and bool(text.strip())
        case "assistant", "tool_use":
            call = value.get("id")
            if not isinstance(call, str) or not call or call in known.ids:
                return False
            known.ids.add(call)
            known.open.add(call)
            return True
        case "assistant", "thinking" | "redacted_thinking" | "sealed":
            return True
        case "user", "tool_result":
            call = value.get("tool_use_id")
            if known.past_results or call not in known.open or not visible(value.get("content")):
                return False
            known.open.discard(str(call))
            return True
        case "user", _:
            return isinstance(kind, str) and kind not in ("tool_use", "thinking", "redacted_thinking", "sealed")
        case _:
            return False


def visible(content: object) -> bool:
    """Whether a tool result's content may be sent: no text block in it is blank. It may be missing or a bare string."""
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return not any(_blank(part) for part in parts)


def _blank(part: object) -> bool:
    match part:
        case {"type": "text", "text": str(text)}:
            return not text.strip()
        case {"type": "text"}:
            return True
        case _:
            return False

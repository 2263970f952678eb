"""Stubs: old results and bulky arguments as one line each, chosen from rows, written as the edits of one statement.

Nothing is lost by one: the message keeps the whole text, and the line names the handle that reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from shared.request import blocks, canonical, estimate, handles
from shared.request.assembled import Piece, Request
from shared.text import begun
from workers.reduction import telling
from workers.reduction.sizes import WORTH, content_digest

RECALL = "read_artifact"
_LONG = 400
"""Characters of an argument that are left out of a call; shorter ones stay and tell what the call was about."""
_BEGINS = 40


@dataclass(frozen=True, slots=True)
class Stub:
    """An edit of kind `stub` that is not written yet; `before` and `after` are tokens as billed."""

    message: int
    block: int
    line: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`drop` is what all of it takes out, signed reasoning behind the first stub included; in tokens as billed. `first`
    and `end` are the rows of the first stub and of the last piece outside the tail."""

    stubs: tuple[Stub, ...]
    drop: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class _Call:
    """`page_of`: the handle that a call of read_artifact named."""

    tool: str
    page_of: str | None = None


def plan(request: Request, start: int, per_weight: float, tools: Sequence[str]) -> Plan | None:
    """Stubs for what is worth one among the pieces before `start`, of a request that was projected from rows (a mended
    one does not say which row a block is of). None where there is nothing."""
    calls = _calls(request.pieces)
    whole = _standing(request.pieces[start:])
    found: list[Stub] = []
    for at, piece in enumerate(request.pieces[:start]):
        if request.weights[at] * per_weight > WORTH:
            found.extend(_stubs(piece, calls, whole, per_weight, recall=RECALL in tools))
    if not found:
        return None
    first = min(stub.message for stub in found)
    sealed = sum(_sealed(piece) for piece in request.pieces if piece.id >= first)
    drop = sum(stub.before - stub.after for stub in found) + round(sealed * per_weight)
    return Plan(tuple(found), drop, first, request.pieces[start - 1].id)


def line_of(tool: str, tokens: int, handle: str, text: str, *, recall: bool) -> str:
    """What stands for a result: which tool, how much, how to read it again, how it begins and what stands out in it."""
    how = f"{RECALL} {handle} shows it again" if recall else f"kept as {handle}; run the tool again to see it"
    begins = begun(" ".join(text[: 4 * _BEGINS].split()), _BEGINS)
    odd = telling.odd_line(text)
    more = "" if odd is None or odd.startswith(begins.rstrip("\u2026")) else f"; one line in it: {odd}"
    return f"[{tool}: {tokens:,} tokens left out; {how}; it begins: {begins}{more}]"


def line_of_same(tool: str, handle: str) -> str:
    """What stands for a result that another one repeats."""
    return f"[{tool}: the same, to the character, as {handle}, which stands whole in this conversation]"


def _stubs(
    piece: Piece, calls: Mapping[str, _Call], whole: Mapping[bytes, str], per_weight: float, *, recall: bool
) -> list[Stub]:
    found: list[Stub] = []
    index = -1
    for block in piece.blocks:
        kind = blocks.kind(block)
        if blocks.is_reasoning(block):  # stands in no row's content
            continue
        index += 1
        tokens = round(_weight(block) * per_weight)
        if tokens <= WORTH:
            continue
        handle = handles.result(piece.id, index)
        match kind:
            case "tool_result":
                line = _result(block, calls, whole, handle, tokens, recall=recall)
            case "tool_use":
                line = _arguments(block, handle)
            case _:
                continue
        after = round(_weight(blocks.stub(block, line)) * per_weight)
        if after < tokens:
            found.append(Stub(piece.id, index, line, tokens, after))
    return found


def _result(
    block: str, calls: Mapping[str, _Call], whole: Mapping[bytes, str], handle: str, tokens: int, *, recall: bool
) -> str:
    """A page of a text that has a handle is named by that one: there is no handle of a handle."""
    call = calls.get(str(blocks.parse(block).get("tool_use_id", "")), _Call("a tool"))
    other = whole.get(content_digest(block))
    if other is not None:
        return line_of_same(call.tool, other)
    return line_of(call.tool, tokens, call.page_of or handle, blocks.text_of(block), recall=recall)


def _arguments(block: str, handle: str) -> str:
    """A call's arguments with each long text in them replaced; the rest of them tells what was done. Where they are
    long without one, a sentence stands for all of them."""
    given = blocks.parse(block).get("input")
    kept = canonical.dump(_shortened(given, handle))
    whole = canonical.dump(given)
    return kept if len(kept) < len(whole) // 2 else f"{len(whole):,} characters left out; kept as {handle}"


def _shortened(value: object, handle: str) -> object:
    match value:
        case str() if len(value) > _LONG:
            return f"({len(value):,} characters left out; kept as {handle})"
        case dict():
            return {key: _shortened(one, handle) for key, one in cast("dict[str, object]", value).items()}
        case list():
            return [_shortened(one, handle) for one in cast("list[object]", value)]
        case _:
            return value


def _calls(pieces: Sequence[Piece]) -> dict[str, _Call]:
    """What each call asked for, by its id."""
    calls: dict[str, _Call] = {}
    for piece in pieces:
        if piece.role != "assistant":
            continue
        for block in piece.blocks:
            if blocks.kind(block) == "tool_use":
                value: dict[str, Any] = blocks.parse(block)
                tool, given = str(value.get("name", ""))[:64], value.get("input")
                asked = cast("dict[str, object]", given).get("handle") if tool == RECALL and given else None
                named = asked if isinstance(asked, str) and handles.parse(asked) is not None else None
                calls[str(value.get("id", ""))] = _Call(tool, named)
    return calls


def _standing(pieces: Sequence[Piece]) -> dict[bytes, str]:
    """Results that stay whole: their handle by the digest of what they say."""
    return {
        content_digest(block): handles.result(piece.id, index)
        for piece in pieces
        if piece.role == "user"
        for index, block in enumerate(piece.blocks)
        if blocks.kind(block) == "tool_result"
    }


def _sealed(piece: Piece) -> float:
    return sum(_weight(block) for block in piece.blocks if piece.role == "assistant" and blocks.is_reasoning(block))


def _weight(block: str) -> float:
    return estimate.weigh_units((block.encode(),))

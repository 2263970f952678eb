"""The marked request: frozen, the only type a transport accepts, so nothing can touch a transcript after marking.

A mark adds its own characters to a block and changes no other byte; the same request and marks text give the same body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never, cast

from shared.request import blocks, canonical, chat, converse, dialect, responses
from shared.request.assembled import CLOSING, Request, lead, native
from shared.request.dialect import NATIVE, Dialect, Wire


class Ttl(StrEnum):
    MINUTES = "5m"
    HOUR = "1h"

    @property
    def seconds(self) -> float:
        """For how long the provider keeps an entry after its last use."""
        return 300.0 if self is Ttl.MINUTES else 3600.0


class Place(StrEnum):
    TOOLS = "tools"  # the last tool; `at` is not read
    SYSTEM = "system"  # `at` is the index of the block
    MESSAGE = "message"  # `at` is the id of the row, whose last block carries it


@dataclass(frozen=True, slots=True)
class Mark:
    place: Place
    at: int
    ttl: Ttl


@dataclass(frozen=True, slots=True)
class MarkedRequest:
    """What goes out. `end_message_id` is the row that carries the new end mark: the next request's
    `last_breakpoint_message_id`; `block_count` and `digest` are those of the unmarked request."""

    request: Request
    marks: tuple[Mark, ...]
    end_message_id: int | None
    block_count: int
    digest: str
    dialect: Dialect = NATIVE

    @property
    def marks_text(self) -> str:
        """The marks as `marked_from` reads them."""
        return write_marks(self.marks, self.dialect)

    def body(self, params_text: str) -> bytes:
        """The bytes of the request: the parameters (a JSON object's text without its braces), tools, system,
        messages."""
        match self.dialect.wire:
            case Wire.ANTHROPIC:
                return self._native(params_text)
            case Wire.CHAT:
                return chat.body(self.request, params_text, self.dialect, *self._beside(_control))
            case Wire.RESPONSES:
                return responses.body(self.request, params_text, self.dialect)
            case Wire.CONVERSE:
                tools = next((_point(one.ttl) for one in self.marks if one.place is Place.TOOLS), "")
                return converse.body(self.request, params_text, self.dialect, tools, *self._beside(_point))
            case _:
                assert_never(self.dialect.wire)

    def _beside(self, written: Callable[[Ttl], str]) -> tuple[dict[int, str], dict[int, dict[int, str]]]:
        """The marks as text, by where they stand among the system's blocks, and among the messages as they go out:
        (message, block)."""
        system = {one.at: written(one.ttl) for one in self.marks if one.place is Place.SYSTEM}
        wanted = {one.at: one.ttl for one in self.marks if one.place is Place.MESSAGE}
        found: dict[int, dict[int, str]] = {}
        message, block, role = -1, 0, None
        for piece in self.request.pieces if wanted else ():
            if piece.role != role:
                message, block, role = message + 1, 0, piece.role
            block += len(piece.blocks)
            if piece.id in wanted:
                found.setdefault(message, {})[block - 1] = written(wanted[piece.id])
        return system, found

    def _native(self, params_text: str) -> bytes:
        ttls = {(one.place, one.at): one.ttl for one in self.marks}
        parts = [params_text] if params_text else []
        if self.request.tools_text:
            parts.append(f'"tools":{_tools(self.request.tools_text, ttls)}')
        if self.request.system:
            system = (_marked(block, ttls.get((Place.SYSTEM, i))) for i, block in enumerate(self.request.system))
            parts.append(f'"system":{blocks.join(system)}')
        parts.append('"messages":[')
        fragments = _fragments(self.request, ttls)
        closing = CLOSING if fragments else b""
        return b"".join(((f"{{{','.join(parts)}").encode(), *fragments, closing, b"]}"))


def mark(
    request: Request, marks: Sequence[Mark], end_message_id: int | None, dialect: Dialect = NATIVE
) -> MarkedRequest:
    """Called by the cache plan and by replay, by nobody else."""
    chain = request.chain
    return MarkedRequest(request, tuple(marks), end_message_id, chain.count, chain.digest, dialect)


def marked_from(request: Request, marks_text: str) -> MarkedRequest:
    """The request marked as a stored call was: with the same rows, its body equals what went out. Raises ValueError
    when the text is not a list of marks or names a place that the request does not have."""
    return marked_at(request, read_marks(marks_text), read_dialect(marks_text))


def write_marks(marks: Sequence[Mark], dialect: Dialect) -> str:
    """A list of marks; on a wire that is not Anthropic's an object, with the dialect that the call was written in."""
    listed = [{"place": one.place, "at": one.at, "ttl": one.ttl} for one in marks]
    return canonical.dump(listed if dialect == NATIVE else {"dialect": dialect.told(), "marks": listed})


def read_dialect(marks_text: str) -> Dialect:
    """In which dialect a call was written, by its stored marks."""
    value = canonical.load_strict(marks_text)
    return dialect.read(cast("dict[str, object]", value).get("dialect")) if isinstance(value, dict) else NATIVE


def read_marks(marks_text: str) -> tuple[Mark, ...]:
    """The marks as they were written. Raises ValueError when the text is not a list of marks."""
    value = canonical.load_strict(marks_text)
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("marks")
    entries = cast("list[object]", value) if isinstance(value, list) else None
    if entries is None:
        raise ValueError(f"not a list of marks: {marks_text[:80]}")
    return tuple(_read(entry) for entry in entries)


def marked_at(request: Request, marks: Sequence[Mark], dialect: Dialect = NATIVE) -> MarkedRequest:
    """The request with marks that were placed before. Raises ValueError when one names a place that it does not
    have."""
    wanted = {one.at for one in marks if one.place is Place.MESSAGE}
    for piece in reversed(request.pieces):  # marks stand near the end: a long history is not walked
        if not wanted:
            break
        wanted.discard(piece.id)
    if wanted:
        raise ValueError(f"message {min(wanted)} carries a mark and is not in the request")
    for one in marks:
        if one.place is Place.SYSTEM and not 0 <= one.at < len(request.system):
            raise ValueError(f"system block {one.at} carries a mark and is not in the request")
    ends = [one.at for one in marks if one.place is Place.MESSAGE]
    return mark(request, marks, ends[-1] if ends else None, dialect)


def _read(entry: object) -> Mark:
    match entry:
        case {"place": str(place), "at": int(at), "ttl": str(ttl)}:
            return Mark(Place(place), at, Ttl(ttl))
        case _:
            raise ValueError(f"not a mark: {str(entry)[:80]}")


def _fragments(request: Request, ttls: dict[tuple[Place, int], Ttl]) -> Sequence[bytes]:
    """The cached fragments, with new ones only for the pieces that carry a mark."""
    wanted = {at for place, at in ttls if place is Place.MESSAGE}
    fragments = list(request.fragments)
    index = len(fragments)
    while wanted and index:
        index -= 1
        piece = request.pieces[index]
        if piece.id not in wanted:
            continue
        wanted.discard(piece.id)
        *before, last = native(piece.blocks)
        opening = lead(request.pieces[index - 1].role if index else None, piece.role)
        fragments[index] = opening + ",".join((*before, _marked(last, ttls[Place.MESSAGE, piece.id]))).encode()
    return fragments


def _tools(tools_text: str, ttls: dict[tuple[Place, int], Ttl]) -> str:
    ttl = ttls.get((Place.TOOLS, 0))
    end = tools_text.rindex("}") + 1 if ttl else 0
    return _marked(tools_text[:end], ttl) + tools_text[end:]


def _marked(block_text: str, ttl: Ttl | None) -> str:
    match ttl:
        case None:
            return block_text
        case _:
            return f"{block_text[:-1]}{_control(ttl)}}}"


def _control(ttl: Ttl) -> str:
    """The member that a mark adds. The default is written without its name, as the provider documents it."""
    return (
        ',"cache_control":{"type":"ephemeral"}'
        if ttl is Ttl.MINUTES
        else (',"cache_control":{"type":"ephemeral","ttl":"1h"}')
    )


def _point(ttl: Ttl) -> str:
    """The block that a mark is on Bedrock's wire, where it stands behind what it marks."""
    told = "" if ttl is Ttl.MINUTES else ',"ttl":"1h"'
    return f'{{"cachePoint":{{"type":"default"{told}}}}}'

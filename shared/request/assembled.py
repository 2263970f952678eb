"""The assembled request: immutable, grown by new pieces only, with the bytes, digest and weight of what is already
there kept.

Each piece's wire fragment depends on nothing but itself and the role before it, so inside an epoch a fragment is
encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from shared.request import blocks, digest, estimate
from shared.request.dialect import SEALED
from shared.request.digest import Chain, Rolling

EPHEMERAL = 0
"""Id of a piece that is no row: the instruction at the end of a final or summary call."""

ROLES = ("user", "assistant")
_OPENING = {role: f'{{"role":"{role}","content":['.encode() for role in ROLES}
_TURNING = {role: b"]}," + opening for role, opening in _OPENING.items()}
CLOSING = b"]}"
_SEALED = f'{{"type":"{SEALED}",'


@dataclass(frozen=True, slots=True)
class Piece:
    """What one row (or summary, or instruction) puts into the request. Never without blocks."""

    id: int
    role: str
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One message on the wire: neighbouring pieces of one role. `last_id` is the id of its last row."""

    role: str
    blocks: tuple[str, ...]
    last_id: int


@dataclass(frozen=True, slots=True)
class Request:
    """A projected request, unmarked. `pieces` are its rows, `messages` the same merged as they go out."""

    tools_text: str  # the array as stored; empty when the request carries no tools
    system_text: str
    system: tuple[str, ...]
    stable_proved: bool
    with_reasoning: bool
    pieces: tuple[Piece, ...]
    fragments: tuple[bytes, ...]  # of each piece: what opens or goes on with its message, then its blocks
    weights: tuple[float, ...]  # of each piece: estimated tokens before the model's factor
    rolling: Rolling
    weight: float  # of all of it
    newest: int  # the highest id of a row or edit that this request knows
    base: Chain | None  # the chain of the request that this one was extended from

    @property
    def tools(self) -> tuple[str, ...]:
        return blocks.split(self.tools_text) if self.tools_text else ()

    @property
    def messages(self) -> tuple[Message, ...]:
        return merge(self.pieces)

    @property
    def chain(self) -> Chain:
        return self.rolling.chain


def merge(pieces: Iterable[Piece]) -> tuple[Message, ...]:
    """Neighbours of one role as one message, blocks in order."""
    found: list[Message] = []
    for role, group in groupby(pieces, key=lambda piece: piece.role):
        members = list(group)
        found.append(Message(role, tuple(block for piece in members for block in piece.blocks), members[-1].id))
    return tuple(found)


def begin(tools_text: str, system_text: str, *, stable_proved: bool, with_reasoning: bool, newest: int) -> Request:
    """A request with its floor and no message yet."""
    system = blocks.split(system_text) if system_text else ()
    rolling = digest.start().extend(digest.TOOLS, (tools_text.encode(),))
    rolling = rolling.extend(digest.SYSTEM, (block.encode() for block in system))
    return Request(
        tools_text=tools_text,
        system_text=system_text,
        system=system,
        stable_proved=stable_proved,
        with_reasoning=with_reasoning,
        pieces=(),
        fragments=(),
        weights=(),
        rolling=rolling,
        weight=estimate.weigh_floor(tools_text, system),
        newest=newest,
        base=None,
    )


def append(request: Request, pieces: Sequence[Piece], newest: int) -> Request:
    """The request with these pieces at its end. Pieces without blocks leave nothing behind, so their neighbours
    merge."""
    before = request.pieces[-1].role if request.pieces else None
    kept: list[Piece] = []
    fragments: list[bytes] = []
    feed: list[tuple[str, bytes]] = []
    weights: list[float] = []
    for piece in pieces:
        if not piece.blocks:
            continue
        encoded = [block.encode() for block in piece.blocks]
        sent = [block.encode() for block in native(piece.blocks)] if piece.role == "assistant" else encoded
        fragments.append(lead(before, piece.role) + b",".join(sent))
        feed.extend((piece.role, unit) for unit in encoded)
        weights.append(estimate.weigh_units(encoded))
        kept.append(piece)
        before = piece.role
    return replace(
        request,
        pieces=request.pieces + tuple(kept),
        fragments=request.fragments + tuple(fragments),
        rolling=request.rolling.feed(feed),
        weights=request.weights + tuple(weights),
        weight=request.weight + sum(weights),
        newest=max(newest, request.newest),
        base=request.chain if request.pieces else None,
    )


def native(block_texts: tuple[str, ...]) -> tuple[str, ...]:
    """Less what only another provider takes back."""
    if not any(block.startswith(_SEALED) for block in block_texts):
        return block_texts
    return tuple(block for block in block_texts if not block.startswith(_SEALED))


def lead(before: str | None, role: str) -> bytes:
    """What stands between the piece before (its role, or None at the start) and a piece of this role."""
    if before is None:
        return _OPENING[role]
    return b"," if before == role else _TURNING[role]


def with_tail(request: Request, block_texts: Sequence[str], role: str = "user") -> Request:
    """The request with an instruction at its end that is no row of the transcript (final and summary calls)."""
    return append(request, (Piece(EPHEMERAL, role, tuple(block_texts)),), request.newest)


def with_messages(request: Request, messages: Iterable[Message]) -> Request:
    """The same floor under other messages: what transcript repair gives back when it had to change something."""
    floor = begin(
        request.tools_text,
        request.system_text,
        stable_proved=request.stable_proved,
        with_reasoning=request.with_reasoning,
        newest=request.newest,
    )
    return replace(append(floor, [Piece(m.last_id, m.role, m.blocks) for m in messages], request.newest), base=None)

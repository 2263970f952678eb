"""How much of a conversation could be left out: what old results weigh, what stands behind them. Pure, and kept up with
the request as it grows, so that a step costs its own messages and not the history.

The tally is a guess about blocks that it does not parse; whoever prunes looks again, at rows (workers.reduction.prune).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from hashlib import blake2b

from shared.request import blocks
from shared.request.assembled import Piece, Request

WORTH = 200
"""Tokens from which a result or a call's arguments are worth a stub (economics.md: "results over 200 tokens")."""
STUB = 90.0
"""Weight of a stub in its block: the line, the ids, the wrapping."""
SUMMARY = 3_000
"""Tokens that a summary is expected to have."""
_CONTENT = ',"content":'


@dataclass(frozen=True, slots=True)
class Tail:
    """What no reduction touches at the end: so many messages, or so many tokens of them, whichever keeps less. What the
    model has not answered yet is never touched either, however much it is: it would be cut before it was read."""

    messages: int = 20
    tokens: int = 40_000


@dataclass(frozen=True, slots=True)
class Sizes:
    """In tokens as billed. `prompt` is the projection of the next call (P), `room` the threshold. `drop` (d) is what
    stubs would take out, `stubs` how many, `behind` (L) what would stand behind the first of them; `middle` (dc) and
    `middle_behind` (Lc) are the same for one summary of everything between head and tail; `floor` is tools and system
    prompt."""

    prompt: int
    room: int
    floor: int = 0
    drop: int = 0
    stubs: int = 0
    behind: int = 0
    middle: int = 0
    middle_behind: int = 0


@dataclass(slots=True)
class Tally:
    """Of one request's pieces, in weights (tokens before the model's factor). Belongs to one thread."""

    floor: float = 0.0
    newest: Piece | None = None
    starts: list[float] = field(default_factory=list[float])
    """What stands before each piece, the floor included."""
    savings: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """Of each piece: what stubs would take out of it, and how many they are."""
    total: float = 0.0
    head: int | None = None
    """Where the first answer stands: what was said before it is the task as asked."""
    answered: int = 0
    """Behind the last answer: what follows has not been answered yet."""
    passed: int = 0
    """Pieces before it are outside the tail, and counted in the next three."""
    drop: float = 0.0
    stubs: int = 0
    first: int | None = None
    raw: dict[bytes, tuple[int, int]] = field(default_factory=dict[bytes, tuple[int, int]])
    """Where a result that is worth a stub stands whole: (message, block) by the digest of its content."""


def follow(tally: Tally | None, request: Request) -> Tally:
    """The tally of this request: of what is new since the last one, or of all where it is not that one grown."""
    known = len(tally.starts) if tally is not None else 0
    if tally is None or known > len(request.pieces) or (known and request.pieces[known - 1] is not tally.newest):
        known = 0
        tally = Tally()
    if not known:
        tally.floor = tally.total = request.weight - sum(request.weights)
    for piece, weight in zip(request.pieces[known:], request.weights[known:], strict=True):
        _add(tally, piece, weight)
    return tally


def measure(tally: Tally, tail: Tail, per_weight: float, *, coming: int, prompt: int, room: int) -> Sizes:
    """Sizes before a call that takes `coming` more messages. `per_weight` turns a weight into tokens as billed;
    `prompt` and `room` in tokens. Moves what the tally counts as outside the tail, which never goes back."""
    count = len(tally.starts)
    of_messages = max(0, count + coming - tail.messages)
    grown = max(prompt / per_weight, tally.total)
    of_tokens = bisect_left(tally.starts, grown - tail.tokens / per_weight)
    start = min(max(of_messages, of_tokens), tally.answered)
    for at in range(tally.passed, start):
        saved, stubs = tally.savings[at]
        if stubs:
            tally.drop += saved
            tally.stubs += stubs
            tally.first = at if tally.first is None else tally.first
    tally.passed = max(tally.passed, start)
    behind = grown - tally.starts[tally.first] - tally.drop if tally.first is not None else 0.0
    head = tally.starts[tally.head] if tally.head is not None else grown
    middle = max(0.0, (tally.starts[start] if start < count else tally.total) - head)
    dropped = max(0, round(middle * per_weight) - SUMMARY)
    return Sizes(
        prompt=prompt,
        room=room,
        floor=round(tally.floor * per_weight),
        drop=round(tally.drop * per_weight),
        stubs=tally.stubs,
        behind=max(0, round(behind * per_weight)),
        middle=dropped,
        middle_behind=max(0, round((grown - head) * per_weight) - dropped) if dropped else 0,
    )


def content_digest(block_text: str) -> bytes:
    """The name of what a result says, whichever call it answers."""
    return blake2b(block_text[max(0, block_text.find(_CONTENT)) :].encode(), digest_size=16).digest()


def _add(tally: Tally, piece: Piece, weight: float) -> None:
    at = len(tally.starts)
    tally.newest = piece
    tally.starts.append(tally.total)
    tally.total += weight
    if piece.role == "assistant":
        tally.head = at if tally.head is None else tally.head
        tally.answered = at + 1
    saved, stubs = 0.0, 0
    if weight > WORTH:
        size = sum(map(len, piece.blocks))
        for index, block in enumerate(piece.blocks):
            share = weight * len(block) / size
            if share <= WORTH or blocks.kind(block) not in ("tool_result", "tool_use"):
                continue
            saved += share - STUB
            stubs += 1
            if piece.role == "user":
                tally.raw.setdefault(content_digest(block), (piece.id, index))
    tally.savings.append((saved, stubs))

"""Where the cache breakpoints go: decided last, on a request that is already whole, at most four, none wasted.

Each refusal is a function of its own, because each was somebody's refused request or somebody's bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from shared.request import blocks
from shared.request.assembled import EPHEMERAL, Piece, Request
from shared.request.dialect import NATIVE, Dialect
from shared.request.marked import Mark, MarkedRequest, Place, Ttl, mark
from shared.values import Purpose

MOST_MARKS = 4


class Shape(StrEnum):
    """How a route carries calls: as blocks of the content, or beside it, where a mark on them is not seen."""

    NATIVE = "native"
    ENVELOPE = "envelope"


@dataclass(frozen=True, slots=True)
class Route:
    """What one provider wire does with a mark."""

    marks: bool
    max_ttl: Ttl
    shape: Shape


ANTHROPIC = Route(marks=True, max_ttl=Ttl.HOUR, shape=Shape.NATIVE)
ENVELOPE = Route(marks=True, max_ttl=Ttl.MINUTES, shape=Shape.ENVELOPE)
UNMARKED = Route(marks=False, max_ttl=Ttl.MINUTES, shape=Shape.ENVELOPE)


@dataclass(frozen=True, slots=True)
class PlanState:
    """What the plan needs of the session: `last_breakpoint_message_id` is the `end_message_id` of its previous
    request; `front_ttl` the one of the shared front where it differs from the session's own. `region_end_message_id` is
    the last row of a region that was just edited: what is cut next begins behind it, and will want to read up to it."""

    route: Route = ANTHROPIC
    purpose: Purpose = Purpose.MAIN
    ttl: Ttl = Ttl.MINUTES
    last_breakpoint_message_id: int | None = None
    front_ttl: Ttl | None = None
    region_end_message_id: int | None = None
    dialect: Dialect = NATIVE


def place(request: Request, state: PlanState) -> MarkedRequest:
    """The request with its marks, frozen: nothing can touch it between here and the wire."""
    if not state.route.marks:
        return mark(request, (), None, state.dialect)
    match state.purpose:
        case Purpose.FINAL | Purpose.TITLE | Purpose.PROBE:  # nobody reads it, and without tools it shares no prefix
            return mark(request, (), None, state.dialect)
        case Purpose.SUMMARY:  # reads the session's cache; what it writes nobody would read
            pinned, end = _at(request, state.last_breakpoint_message_id), None
        case Purpose.MAIN | Purpose.PING:
            pinned = _at(request, state.last_breakpoint_message_id)
            end = boundary_before(request.pieces, len(request.pieces), state.route)
        case _:
            assert_never(state.purpose)
    front = _front(request, state, pinned)
    tail = {index for index in (pinned, end) if index is not None}
    region = _at(request, state.region_end_message_id)
    if region is not None and region not in tail:
        tail.add(region)
        front = front[-(MOST_MARKS - len(tail)) :]  # what others share is read all the same, only not kept alive
    elif len(front) < 2 and pinned is not None:  # no static prefix to split: the third goes on the tail
        earlier = boundary_before(request.pieces, pinned, state.route)
        tail |= {index for index in (earlier,) if index is not None}
    ttl = clamp_ttl(state.ttl, state.route)
    marks = [*front, *(Mark(Place.MESSAGE, request.pieces[index].id, ttl) for index in sorted(tail))]
    return mark(request, descending(marks), request.pieces[end].id if end is not None else None, state.dialect)


def can_carry(block_text: str) -> bool:
    """Never on a block that cannot carry a mark: the provider refuses one on reasoning and on an empty text."""
    match blocks.kind(block_text):
        case "thinking" | "redacted_thinking" | "sealed":
            return False
        case "text":
            return blocks.shows_at_once(block_text) or bool(blocks.text_of(block_text).strip())
        case _:
            return True


def is_boundary(pieces: Sequence[Piece], index: int) -> bool:
    """Never inside a tool run: not between a call and its results, and of a batch only after its last result."""
    last = blocks.kind(pieces[index].blocks[-1])
    if last == "tool_use":
        return False
    follows = pieces[index + 1].blocks[0] if index + 1 < len(pieces) else None
    return not (last == "tool_result" and follows is not None and blocks.kind(follows) == "tool_result")


def route_honours(route: Route, piece: Piece) -> bool:
    """Never on a message that the route would ignore: in an envelope, an assistant message that is nothing but tool
    calls has no content for the mark to stand in."""
    if route.shape is Shape.NATIVE or piece.role != "assistant":
        return True
    return any(
        blocks.kind(block) not in ("tool_use", "thinking", "redacted_thinking", "sealed") for block in piece.blocks
    )


def clamp_ttl(ttl: Ttl, route: Route) -> Ttl:
    """Never a time to live that the route does not honour."""
    return ttl if route.max_ttl is Ttl.HOUR else Ttl.MINUTES


def descending(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Never one hour after five minutes: the provider refuses such a request, so the later mark is lowered."""
    found: list[Mark] = []
    for one in marks:
        short = bool(found) and found[-1].ttl is Ttl.MINUTES
        found.append(Mark(one.place, one.at, Ttl.MINUTES) if short else one)
    return tuple(found)


def _front(request: Request, state: PlanState, pinned: int | None) -> tuple[Mark, ...]:
    """The end of tools and stable tier, shared by all sessions of a profile, and the end of the system prompt. While no
    mark is wanted for where the last request wrote, the end of the context tier too: children of one parent share it,
    and are told apart only after it."""
    ttl = clamp_ttl(state.front_ttl or state.ttl, state.route)
    if not request.system:
        return (Mark(Place.TOOLS, 0, ttl),) if request.tools_text else ()
    last = len(request.system) - 1
    ends = (0, last) if request.stable_proved and last > 0 else (last,)
    if len(ends) == 2 and last > 1 and pinned is None:
        ends = (0, last - 1, last)
    return tuple(Mark(Place.SYSTEM, index, ttl) for index in ends if can_carry(request.system[index]))


def _at(request: Request, wanted: int | None) -> int | None:
    """Exactly where the previous request wrote, however many blocks ago: a mark looks back only 20 positions, a step
    of a dozen parallel calls is 25, and what is not found is billed again."""
    if wanted is None:
        return None
    for index in range(len(request.pieces) - 1, -1, -1):
        if request.pieces[index].id == wanted:
            return index if can_carry(request.pieces[index].blocks[-1]) else None
    return None


def boundary_before(pieces: Sequence[Piece], limit: int, route: Route) -> int | None:
    """The last piece before the limit that may end with a mark."""
    for index in range(limit - 1, -1, -1):
        piece = pieces[index]
        fit = piece.id != EPHEMERAL and can_carry(piece.blocks[-1])
        if fit and is_boundary(pieces, index) and route_honours(route, piece):
            return index
    return None

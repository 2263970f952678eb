"""The rolling digest that proves each request extends the last: over tools, system blocks and message blocks, without
marks.

Each unit is fed as role, length and bytes, so no two lists of units share a digest by shifting a border; borders
between messages are not fed, so two rows of one role give the same digest whether or not they were merged into one
message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash  # pyright: ignore[reportPrivateUsage]  the stub's only name for a hash object

    from shared.request.assembled import Request

TOOLS, SYSTEM = "tools", "system"


@dataclass(frozen=True, slots=True)
class Chain:
    """What a call stores: how many units its unmarked request had, and their digest."""

    count: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class Rolling:
    """A digest that can go on. `extend` leaves the value it is called on as it was and costs only the new units."""

    count: int
    state: _Hash

    def extend(self, role: str, units: Iterable[bytes]) -> Rolling:
        return self.feed((role, unit) for unit in units)

    def feed(self, tagged: Iterable[tuple[str, bytes]]) -> Rolling:
        """As `extend`, for units of several roles."""
        state, count = self.state.copy(), self.count
        for role, unit in tagged:
            state.update(b"%s:%d:" % (role.encode(), len(unit)))
            state.update(unit)
            count += 1
        return Rolling(count, state)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rolling) and self.chain == other.chain

    def __hash__(self) -> int:
        return hash(self.chain)

    def copy(self) -> Rolling:
        return Rolling(self.count, self.state.copy())

    @property
    def hexdigest(self) -> str:
        return self.state.hexdigest()

    @property
    def chain(self) -> Chain:
        return Chain(self.count, self.hexdigest)


def start() -> Rolling:
    return Rolling(0, sha256())


def of(request: Request) -> Chain:
    """The chain of the whole request, at the price of its newest blocks."""
    return request.rolling.chain


def at(request: Request, count: int) -> str:
    """The digest of the first `count` units, computed afresh from their bytes, so that it is a proof. Empty when
    there are fewer."""
    found = start().feed(islice(units(request), count))
    return found.hexdigest if found.count == count else ""


def at_each(request: Request, counts: Collection[int]) -> dict[int, str]:
    """As `at` for several counts, in one pass over the bytes; those that the request does not reach are left out."""
    rolling, found = start(), dict[int, str]()
    for tagged in units(request):
        if len(found) == len(counts):
            break
        rolling = rolling.feed((tagged,))
        if rolling.count in counts:
            found[rolling.count] = rolling.hexdigest
    return found


def units(request: Request) -> Iterable[tuple[str, bytes]]:
    """Every unit in the order in which it is fed: the tools as one, each system block, each message block."""
    yield TOOLS, request.tools_text.encode()
    for block in request.system:
        yield SYSTEM, block.encode()
    for piece in request.pieces:
        for block in piece.blocks:
            yield piece.role, block.encode()


def first_break(before: Request, after: Request) -> int | None:
    """The index of the first unit of `before` that `after` does not repeat; None when `after` extends `before`."""
    later = iter(units(after))
    for index, unit in enumerate(units(before)):
        if next(later, None) != unit:
            return index
    return None

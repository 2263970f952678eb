"""What a transcript that was cut still shares with what was sent: the newest call whose whole request stands at its
front. Pure.

So the provider's cache is read where it was written, each later request is proved to extend what came before it, and
the size is known from a bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.request import digest, repair
from shared.request.assembled import Request
from shared.request.marked import Place, read_marks


@dataclass(frozen=True, slots=True)
class Sent:
    """A call of the conversation that was answered, as its row has it; `billed` is its whole prompt in tokens, None
    where the provider told no usage. What it wrote to the provider's cache was last read at `read_at`."""

    last_message: int
    marks: str
    block_count: int
    digest: str
    estimate: int
    model: str
    billed: int | None
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Anchor:
    """What is known of the shared front: where its last breakpoint stands, its chain, (estimate, billed)."""

    pinned: int | None
    chain: tuple[int, str]
    baseline: tuple[int, int] | None
    read_at: datetime


def find(request: Request, sent: Sequence[Sent], model: str) -> Anchor | None:
    """The longest of these calls that this request extends byte for byte, judged by their digests; None where none
    is. A baseline is of one model's tokens."""
    counts = {call.block_count for call in sent}
    mended = repair.mend(request)[0]
    for shape in (request,) if mended is request else (request, mended):
        digests = digest.at_each(shape, counts)
        standing = [call for call in sent if digests.get(call.block_count) == call.digest]
        if standing:
            call = max(standing, key=lambda one: (one.block_count, one.read_at))
            baseline = None if call.billed is None or call.model != model else (call.estimate, call.billed)
            return Anchor(_end(shape, call), (call.block_count, call.digest), baseline, call.read_at)
    return None


def _end(request: Request, call: Sent) -> int | None:
    """The row that carries the call's last breakpoint. Where it had no id yet when the call was stored, it is told by
    its place from the end of that request."""
    places = [one.at for one in read_marks(call.marks) if one.place is Place.MESSAGE]
    if not places or places[-1] >= 0:
        return places[-1] if places else None
    count, pieces = 1 + len(request.system), 0
    while count < call.block_count:
        count += len(request.pieces[pieces].blocks)
        pieces += 1
    return request.pieces[pieces + places[-1]].id

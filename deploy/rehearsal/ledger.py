"""Owns the record of every call: what it was billed, and whether it extended what its session sent before."""

import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Final

from deploy.rehearsal.cache import Bill
from deploy.rehearsal.models import NANOS_PER_DOLLAR, Model, Rates
from deploy.rehearsal.prefix import Prefix

SESSIONS_COMPARED: Final = 5_000
REMEMBERED: Final = 4
# A stack that is left up for weeks must not grow.
CALLS_KEPT: Final = 100_000


@dataclass(slots=True)
class Call:
    index: int
    session: str | None
    model: str
    stream: bool
    request_id: str
    started: float
    started_wall: float
    retry_count: str | None
    # When the call came, by the clock of the cache.
    at: float = 0.0
    max_tokens: int | None = None
    status: int | None = None
    # open, done, refused, fault, client_closed, broken
    state: str = "open"
    error: str | None = None
    ended: float | None = None
    ended_wall: float | None = None
    first_byte: float | None = None
    bill: Bill | None = None
    output: int = 0
    nanos: int | None = None
    blocks: int = 0
    marks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    hit: int = 0
    compared_with: int | None = None
    extended: bool | None = None
    extends_call: int | None = None
    differs_at: int | None = None
    difference: str | None = None
    overlap: bool = False
    answered_by: str | None = None
    # Of the key that it came with, a part of its digest.
    key: str | None = None
    # Headers that tell the key's limits.
    told: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass(frozen=True, slots=True)
class _Seen:
    index: int
    chains: list[bytes]
    labels: list[tuple[int, int, int, str]]


class Ledger:
    """Calls in the order in which they came."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=CALLS_KEPT)
        self._seen: OrderedDict[str, deque[_Seen]] = OrderedDict()
        self._open: dict[str, Call] = {}
        self._next = 0

    def clear(self) -> None:
        self.calls.clear()
        self._seen.clear()
        self._next = 0

    def open(self, call: Call) -> None:
        call.index = self._next
        self._next += 1
        self.calls.append(call)
        self._open[call.request_id] = call

    def others(self, call: Call) -> list[Call]:
        """Calls of the same session that are in flight beside this one."""
        if call.session is None:
            return []
        return [other for other in self._open.values() if other is not call and other.session == call.session]

    def in_flight(self) -> list[Call]:
        return list(self._open.values())

    def close(self, call: Call, state: str) -> None:
        if call.ended is not None:
            return
        call.state = state
        call.ended = time.monotonic()
        call.ended_wall = time.time()
        self._open.pop(call.request_id, None)

    def compare(self, call: Call, prefix: Prefix) -> None:
        """Say whether this request extends the session's last one, and where it first differs if not."""
        call.blocks = len(prefix.chains)
        call.marks = list(prefix.marks)
        if call.session is None:
            return
        earlier = self._seen.setdefault(call.session, deque(maxlen=REMEMBERED))
        self._seen.move_to_end(call.session)
        if len(self._seen) > SESSIONS_COMPARED:
            self._seen.popitem(last=False)
        if earlier:
            last = earlier[-1]
            call.compared_with = last.index
            call.extended = _extends(prefix, last)
            if not call.extended:
                _tell_difference(call, prefix, last)
            call.extends_call = next((seen.index for seen in reversed(earlier) if _extends(prefix, seen)), None)
        earlier.append(_Seen(call.index, prefix.chains, prefix.labels))


def _extends(prefix: Prefix, seen: _Seen) -> bool:
    count = len(seen.chains)
    return len(prefix.chains) >= count and (not count or prefix.chains[count - 1] == seen.chains[-1])


def _tell_difference(call: Call, prefix: Prefix, seen: _Seen) -> None:
    """A rolling digest differs from the first differing block on, so halving finds it."""
    low, high = 0, min(len(prefix.chains), len(seen.chains))
    while low < high:
        middle = (low + high) // 2
        if prefix.chains[middle] == seen.chains[middle]:
            low = middle + 1
        else:
            high = middle
    call.differs_at = low + 1
    if low >= len(prefix.chains):
        call.difference = f"ends before {_path(seen.labels[low])} of call {seen.index}"
    elif low >= len(seen.chains):
        call.difference = f"more blocks than call {seen.index}"
    else:
        call.difference = f"{_path(prefix.labels[low])} where call {seen.index} had {_path(seen.labels[low])}"


def _path(label: tuple[int, int, int, str]) -> str:
    section, first, second, kind = label
    if section == 2:
        return f"messages.{first}.content.{second} ({kind})"
    return f"{('tools', 'system')[section]}.{first} ({kind})"


def cost_nanos(model: Model, bill: Bill, output: int) -> int:
    """The bill in nano-dollars; above a model's cliff all tokens cost the dearer rates."""
    rates: Rates = model.rates
    if model.cliff is not None and bill.prompt > model.cliff[0]:
        rates = model.cliff[1]
    return (
        bill.input * rates.input
        + bill.read * rates.read
        + bill.write_5m * rates.write_5m
        + bill.write_1h * rates.write_1h
        + output * rates.output
    )


def row(call: Call) -> dict[str, Any]:
    """One call as the control surface shows it."""
    bill = call.bill
    return {
        "index": call.index,
        "session": call.session,
        "model": call.model,
        "stream": call.stream,
        "request_id": call.request_id,
        "purpose": None,
        "state": call.state,
        "status": call.status,
        "error": call.error,
        "started": call.started,
        "started_wall": call.started_wall,
        "at": call.at,
        "first_byte": call.first_byte,
        "ended": call.ended,
        "ended_wall": call.ended_wall,
        "duration_s": None if call.ended is None else call.ended - call.started,
        "retry_count": call.retry_count,
        "max_tokens": call.max_tokens,
        "input": bill.input if bill else 0,
        "cache_read": bill.read if bill else 0,
        "cache_write_5m": bill.write_5m if bill else 0,
        "cache_write_1h": bill.write_1h if bill else 0,
        "output": call.output,
        "usd": None if call.nanos is None else call.nanos / NANOS_PER_DOLLAR,
        "key": call.key,
        "blocks": call.blocks,
        "marks": [{"position": position, "ttl": ttl} for position, ttl in call.marks],
        "hit": call.hit,
        "compared_with": call.compared_with,
        "extended": call.extended,
        "extends_call": call.extends_call,
        "differs_at": call.differs_at,
        "difference": call.difference,
        "overlap": call.overlap,
        "answered_by": call.answered_by,
    }

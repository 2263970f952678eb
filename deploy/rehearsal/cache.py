"""Owns the prompt cache and what a request is billed for it.

Entries are written only at marks and become readable when the reply that writes them begins; each lives its TTL from
the start of the request that last wrote or read it.
"""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from deploy.rehearsal.prefix import Prefix

LOOK_BACK: Final = 20
SECONDS: Final = {"5m": 300.0, "1h": 3600.0}
ENTRY_LIMIT: Final = 200_000


@dataclass(slots=True)
class Entry:
    ttl: str
    expires: float


@dataclass(frozen=True, slots=True)
class Bill:
    """Disjoint token buckets of the prompt, and the position of the hit (0 is none)."""

    input: int
    read: int
    write_5m: int
    write_1h: int
    hit: int

    @property
    def prompt(self) -> int:
        return self.input + self.read + self.write_5m + self.write_1h


@dataclass(frozen=True, slots=True)
class Pending:
    """What the first byte of the reply makes readable."""

    start: float
    writes: tuple[tuple[bytes, str], ...]


class PromptCache:
    """Entries by key, oldest use first, bounded."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()

    def open(self, prefix: Prefix, contexts: tuple[bytes, bytes, bytes], start: float) -> tuple[Bill, Pending]:
        """Bill a request that starts now. A read refreshes at once; `commit` makes the writes readable."""
        minimum = prefix.model.min_cacheable
        marks = [(at, ttl) for at, ttl in prefix.marks if prefix.ends[at - 1] >= minimum]
        hit = self._find_hit(prefix, contexts, marks, start)
        hour = max((at for at, ttl in marks if ttl == "1h" and at > hit), default=hit)
        last = max((at for at, _ in marks), default=hit)
        end = [0, *prefix.ends]
        bill = Bill(
            input=prefix.total - end[last],
            read=end[hit],
            write_5m=end[last] - end[hour],
            write_1h=end[hour] - end[hit],
            hit=hit,
        )
        writes: list[tuple[bytes, str]] = []
        hit_ttl = self._touch(_key(prefix, contexts, hit), start) if hit else None
        for at, ttl in marks:
            key = _key(prefix, contexts, at)
            if at > hit:
                writes.append((key, ttl))
            elif at < hit and self._touch(key, start) is None:
                # Undocumented: an unwritten mark inside what was read. It gets the shorter life of the two.
                writes.append((key, "5m" if "5m" in (ttl, hit_ttl) else ttl))
        return bill, Pending(start, tuple(writes))

    def _find_hit(
        self, prefix: Prefix, contexts: tuple[bytes, bytes, bytes], marks: list[tuple[int, str]], start: float
    ) -> int:
        for mark, _ in reversed(marks):
            for at in range(mark, max(0, mark - LOOK_BACK), -1):
                entry = self._entries.get(_key(prefix, contexts, at))
                if entry is not None and start < entry.expires:
                    return at
        return 0

    def _touch(self, key: bytes, start: float) -> str | None:
        entry = self._entries.get(key)
        if entry is None or start >= entry.expires:
            return None
        entry.expires = max(entry.expires, start + SECONDS[entry.ttl])
        self._entries.move_to_end(key)
        return entry.ttl

    def commit(self, pending: Pending) -> None:
        """The reply has begun: what the request wrote can be read."""
        for key, ttl in pending.writes:
            expires = pending.start + SECONDS[ttl]
            entry = self._entries.get(key)
            if entry is None or entry.expires < expires:
                self._entries[key] = Entry(ttl, expires)
                self._entries.move_to_end(key)
        while len(self._entries) > ENTRY_LIMIT:
            self._entries.popitem(last=False)


def _key(prefix: Prefix, contexts: tuple[bytes, bytes, bytes], position: int) -> bytes:
    return blake2b(prefix.chain_at(position) + contexts[prefix.section(position)], digest_size=16).digest()

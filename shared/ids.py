"""Public names: time-ordered UUIDs. They name sessions, turns and calls; they are never an order (see
transcript_id)."""

from __future__ import annotations

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """A version-7 UUID (RFC 9562): 48 bits of Unix milliseconds, then random bits."""
    millis = time.time_ns() // 1_000_000
    value = (millis & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def lock_key(boot_id: uuid.UUID) -> int:
    """The advisory-lock key of a process: the last 63 bits of its boot id, so that pg_locks can be matched to its
    row."""
    return boot_id.int & 0x7FFF_FFFF_FFFF_FFFF

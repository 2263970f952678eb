"""What the supervisor of a run tells its worker, in frames on one socket: output as it comes, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

_HEAD = 5
MOST = 1 << 20
"""Bytes of one frame."""


class Kind(IntEnum):
    """BEGUN and END carry a JSON object, OUTPUT bytes as they came."""

    BEGUN = 1
    OUTPUT = 2
    END = 3


def encode(kind: Kind, data: bytes) -> bytes:
    return bytes([kind]) + len(data).to_bytes(_HEAD - 1, "big") + data


@dataclass(slots=True)
class Reader:
    """Cuts what comes into frames. What stands behind the last one (the launcher's word) stays in `rest`."""

    rest: bytearray = field(default_factory=bytearray)
    ended: bool = False

    def feed(self, piece: bytes) -> Iterator[tuple[Kind, bytes]]:
        """Raises ValueError at what is no frame; after END everything is rest."""
        self.rest += piece
        while not self.ended and len(self.rest) >= _HEAD:
            length = int.from_bytes(self.rest[1:_HEAD], "big")
            kind = Kind(self.rest[0])
            if length > MOST:
                raise ValueError(f"a frame of {length} bytes")
            if len(self.rest) < _HEAD + length:
                return
            data = bytes(self.rest[_HEAD : _HEAD + length])
            del self.rest[: _HEAD + length]
            self.ended = kind is Kind.END
            yield kind, data

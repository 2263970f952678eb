"""A run's output as it is kept while it comes: the beginning and the end, for both say what went wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shared.text import ESCAPES

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_BINARY = 0.1


@dataclass(slots=True)
class Output:
    """At most `half` bytes of the beginning and as many of the end; `total` counts all."""

    half: int
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self.half - len(self.head)
        if room > 0:
            self.head += piece[:room]
            piece = piece[room:]
        self.tail += piece
        if len(self.tail) > 2 * self.half:
            del self.tail[: -self.half]

    def text(self) -> str:
        """What a reader sees; in the middle a line that says how much is left out."""
        tail = bytes(self.tail[-self.half :])
        left_out = self.total - len(self.head) - len(tail)
        if left_out <= 0:
            return shown(bytes(self.head) + tail)
        said = f"\n[{left_out:,} bytes left out here; write long output to a file and read that]\n"
        return shown(bytes(self.head)) + said + shown(tail)


def shown(data: bytes) -> str:
    """As text: no escape of a terminal acts, a line that was written over shows as it ended, and what is no text is
    only named."""
    text = data.decode("utf-8", "replace")
    if data and _UNSEEN.sub("", ESCAPES.sub("", text)).count("\ufffd") + text.count("\x00") > _BINARY * len(text):
        return f"[{len(data):,} bytes that are no text]"
    text = ESCAPES.sub("", text).replace("\r\n", "\n")
    text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")) if "\r" in text else text
    return _UNSEEN.sub("\ufffd", text)

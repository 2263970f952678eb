"""What code in the sandbox may ask of its session: reading tools, by a socket that this one run was given.

Who asks is not in any request: it is the run whose socket this is. So nothing that the code says, or writes there past
its library, makes it another's; and a tool that is not in the list of this run does not exist here.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from dataclasses import dataclass, field, replace

from shared.text import clean_text
from shared.values import Repeat
from workers.tools.context import MayRead, ToolContext, ToolResult

MOST_CALLS = 500
_MOST_REQUEST = 256 << 10
_MOST_ANSWERS = 32 << 20
_PATIENCE_S = 5.0
"""How long a request may take to come whole, and an answer to be taken; the code's own fault otherwise."""


def _nothing(context: ToolContext, name: str, arguments: str) -> ToolResult:
    del context, name, arguments
    return ToolResult("there are no tools here", is_error=True)


NOTHING = MayRead({}, _nothing)
"""Of a run that belongs to no session."""


@dataclass(slots=True)
class Reading:
    """Answers as the run `context`, with what it may read; and to a request for it, with what is to be run."""

    context: ToolContext
    may: MayRead
    channel: socket.socket
    code: str = ""
    calls: int = 0
    sent: int = 0
    used: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.channel.settimeout(_PATIENCE_S)
        # What it asks may be asked again; what the run itself may do is another matter, and not to be had from here.
        self.context = replace(self.context, repeat=Repeat.REPEATABLE)

    @property
    def fd(self) -> int:
        return self.channel.fileno()

    def answer(self) -> bool:
        """Takes one request and answers it; false where nothing more will come."""
        try:
            request = json.loads(self._receive())
            if request == "code":
                self._send(
                    {"code": self.code, "tools": {name: list(of) for name, of in sorted(self.may.names.items())}}
                )
                return True
            name, arguments = str(request["tool"]), json.dumps(request["arguments"])
        except (OSError, EOFError, ValueError, TypeError, KeyError, RecursionError):
            return self._end()
        try:
            self._send(self._call(name, arguments))
        except OSError:
            return self._end()
        return True

    def _end(self) -> bool:
        """Whoever still waits for an answer hears that none will come."""
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)
        return False

    def _call(self, name: str, arguments: str) -> dict[str, object]:
        self.calls += 1
        if self.calls > MOST_CALLS:
            return {"text": f"at most {MOST_CALLS} calls a run", "is_error": True}
        if self.sent > _MOST_ANSWERS:
            return {"text": f"these tools have given {_MOST_ANSWERS >> 20} MB, and give no more", "is_error": True}
        if name not in self.may.names:
            shown = clean_text(name[:64])
            there = ", ".join(sorted(self.may.names)) or "none"
            return {"text": f"{shown!r} is not to be had in code; there are {there}", "is_error": True}
        self.used.add(name)
        result = self.may.ask(self.context, name, arguments)
        return {"text": result.text, "is_error": result.is_error}

    def _send(self, message: dict[str, object]) -> None:
        data = json.dumps(message).encode()
        self.sent += len(data)
        self.channel.sendall(len(data).to_bytes(4, "big") + data)

    def _receive(self) -> bytes:
        length = int.from_bytes(self._exactly(4), "big")
        if length > _MOST_REQUEST:
            raise ValueError("a request that large is none")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.channel.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

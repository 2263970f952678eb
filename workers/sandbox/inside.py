"""Runs in the sandbox, as the beginning of a `run_code`: takes the code, gives it the session's reading tools, runs it.

Nothing here is trusted by anybody: whatever the code does with this file and its socket, on the other end stand the
tools that the run may use, for the session that it belongs to. It imports nothing of this project, and must run on
Python 3.9.
"""

from __future__ import annotations

import json
import linecache
import socket
import sys
import threading
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "<code>"


class ToolError(Exception):
    """What a tool answered where it could not do what it was asked."""


class Channel:
    """The socket to the session's tools; one request at a time, whichever thread asks."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._lock = threading.Lock()

    def order(self) -> Any:
        """What is to be run, and with which tools. Asked for: nobody waits to send what nobody reads yet."""
        self._send("code")
        return self.receive()

    def receive(self) -> Any:
        return json.loads(self._exactly(int.from_bytes(self._exactly(4), "big")))

    def ask(self, tool: str, arguments: dict[str, Any]) -> str:
        with self._lock:
            self._send({"tool": tool, "arguments": arguments})
            answer = self.receive()
        if answer["is_error"]:
            raise ToolError(answer["text"])
        return str(answer["text"])

    def _send(self, message: Any) -> None:
        data = json.dumps(message).encode()
        self._socket.sendall(len(data).to_bytes(4, "big") + data)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise ToolError("the session's tools are out of reach")
            data += piece
        return data


def function(channel: Channel, tool: str, names: list[str]) -> Callable[..., str]:
    """`tool` as a function: its arguments by name, or in their order."""

    def call(*given: Any, **named: Any) -> str:
        if len(given) > len(names):
            raise TypeError(f"{tool} takes {', '.join(names) or 'nothing'}")
        return channel.ask(tool, {**{names[at]: value for at, value in enumerate(given)}, **named})

    call.__name__ = call.__qualname__ = tool
    return call


def main(fd: int) -> None:
    channel = Channel(fd)
    order = channel.order()
    code: str = order["code"]
    tools = ModuleType("tools")
    made = {name: function(channel, name, names) for name, names in order["tools"].items()}
    tools.__dict__.update(made, ToolError=ToolError)
    sys.modules["tools"] = tools
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    sys.argv = [NAME]
    try:
        exec(compile(code, NAME, "exec"), {"__name__": "__main__", "ToolError": ToolError, **made})  # noqa: S102 - it is what this process is for
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - as an interpreter would: shown without what stands above the code
        frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.stdout.flush()
        traceback.print_exception(type(error), error, frames)
        sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))

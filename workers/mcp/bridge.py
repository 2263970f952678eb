"""The bridge: a process that speaks with one tool server by the official SDK, so that nothing which a server sends is
read in a worker.

The first message on its socket is the server to speak with; after that come calls, each with a number, and answers go
back as they are there. What is more than a worker wants to know is cut here. Its memory is bounded: a server that sends
a hundred megabytes ends its own bridge. It ends when its socket closes, and its server with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED

from workers.mcp import frames, told

_ROOM_BYTES = 64 * 1024 * 1024
"""Above what the bridge has once it is connected."""
_MOST_PAGES = 10
_ROOM = str(Path(__file__).resolve().parents[2])
_ENTER = "import sys; sys.path.insert(0, sys.argv[1]); from workers.mcp.enter import main; main(sys.argv[2:])"


def main(fd: int) -> None:
    logging.disable(logging.CRITICAL)  # the SDK's lines quote what the server sent
    asyncio.run(_serve(socket.socket(fileno=fd)))
    os._exit(0)  # a thread that the SDK waits in must not hold this process


async def _serve(job: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=job)
    with suppress(frames.Broken, asyncio.IncompleteReadError, ConnectionError):
        setup = await _read(reader)
        bridge = _Bridge(writer)
        try:
            async with asyncio.timeout(float(setup["connect_s"])) as patience:
                async with _client(setup, bridge) as client:
                    bridge.say(ready=True, tools=await _listed(client))
                    patience.reschedule(None)
                    _bound_memory()
                    await bridge.until_gone(reader, client)
        except frames.Broken:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises here, the server could not be spoken with
            bridge.say(failed=told.why(error))
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> dict[str, Any]:
    head = await reader.readexactly(frames.HEAD)
    return frames.decode(await reader.readexactly(frames.length(head)))


class _Bridge:
    """Owns the way back to the worker, and the calls that are out."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.gone = asyncio.Event()
        """The server is: there is nothing left to bridge to."""
        self._calls: dict[int, asyncio.Task[None]] = {}

    def say(self, **message: Any) -> None:
        self._writer.write(frames.encode(message))

    async def changed(self, message: object) -> None:
        """The server says something that nobody asked for; only that its list is another one is of interest."""
        if type(message).__name__ == "ToolListChangedNotification":
            self.say(changed=True)

    async def until_gone(self, reader: asyncio.StreamReader, client: Client) -> None:
        over = {asyncio.create_task(self._answer(reader, client)), asyncio.create_task(self.gone.wait())}
        done, _ = await asyncio.wait(over, return_when=asyncio.FIRST_COMPLETED)
        with suppress(ConnectionError):
            await self._writer.drain()
        for task in done:
            task.result()

    async def _answer(self, reader: asyncio.StreamReader, client: Client) -> None:
        while True:
            order = await _read(reader)
            number = int(order["id"])
            if "cancel" in order:
                task = self._calls.get(number)
                if task is not None:
                    task.cancel()
                continue
            task = asyncio.create_task(self._one(client, order, number))
            self._calls[number] = task
            task.add_done_callback(lambda _, number=number: self._calls.pop(number, None))

    async def _one(self, client: Client, order: dict[str, Any], number: int) -> None:
        try:
            if order["do"] == "alive":
                self.say(id=number, alive=True)
            elif order["do"] == "list":
                self.say(id=number, tools=await _listed(client))
            else:
                seconds = float(order["limit_s"])
                async with asyncio.timeout(seconds):
                    result = await client.call_tool(
                        str(order["tool"]), dict(order["arguments"]), read_timeout_seconds=seconds
                    )
                self.say(id=number, **told.result(result))
        except MemoryError:
            os._exit(1)
        except MCPError as error:  # the server's answer, and the model's to read: what is wrong with its arguments
            self.say(id=number, **told.refusal(error))
            if error.code == CONNECTION_CLOSED:
                self.gone.set()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - one call's failure, as a word; the server's own words stay here
            self.say(id=number, failed=told.why(error))
        with suppress(ConnectionError):
            await self._writer.drain()


def _client(setup: dict[str, Any], bridge: _Bridge) -> Client:
    if setup["command"]:
        server: Any = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-c", _ENTER, _ROOM, *setup["command"]],
            env=setup["env"],
            cwd=setup["folder"],
            encoding_error_handler="replace",
        )
    else:
        import httpx2  # noqa: PLC0415 - of a bridge to an address, alone

        server = streamable_http_client(
            str(setup["url"]), http_client=httpx2.AsyncClient(headers=setup["headers"], timeout=float(setup["call_s"]))
        )
    return Client(server, message_handler=bridge.changed, cache=None)


async def _listed(client: Client) -> list[dict[str, Any]]:
    """All tools of the server, as far as anybody would want to know."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [told.tool(one) for one in page.tools]
        cursor = page.next_cursor
        if not cursor or len(found) >= told.MOST_TOOLS:
            break
    return found[: told.MOST_TOOLS]


def _bound_memory() -> None:
    """From here on this process has little more room than it uses. The hard bound stays: the server inherits it."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        used = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))

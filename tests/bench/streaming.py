"""A server that streams words in each wire at the pace that is asked for, as a program.

The model's name says what: `words-EVENTS-GAP_MS-CHARS`. It prints its address, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator

from tests.providers.speaking import SPEECHES, Said, Speech

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n"
LINES, FRAMES = b"text/event-stream", b"application/vnd.amazon.eventstream"
WIRES = {"/messages": "anthropic", "/chat/completions": "chat_completions", "/responses": "responses"}
FRAMED = "/converse-stream"
AT_ONCE = 200
"""Events of one write where there is no gap between them."""


def events(speech: Speech, count: int, chars: int) -> Iterator[bytes]:
    """An answer of so many deltas: the one that the wire's own speech has, again and again."""
    word = "w" * chars
    parts = speech.stream(Said(text=word, usage=speech.usage(20, count)))
    at = max(nth for nth, one in enumerate(parts[:-2]) if word.encode() in one and b"delta" in one)
    yield b"".join(parts[:at])
    for _ in range(count):
        yield parts[at]
    yield b"".join(parts[at + 1 :])


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            lines = head.lower().split(b"\r\n")
            length = next((int(one.split(b":")[1]) for one in lines if one.startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            framed = path.endswith(FRAMED)
            model = path.split("/")[-2] if framed else json.loads(body)["model"]
            wire = "bedrock_converse" if framed else next(wire for end, wire in WIRES.items() if path.endswith(end))
            _, count, gap_ms, chars = model.split("-")
            writer.write(HEAD % (FRAMES if framed else LINES))
            await _stream(writer, list(events(SPEECHES[wire], int(count), int(chars))), int(gap_ms) / 1_000)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _stream(writer: asyncio.StreamWriter, parts: list[bytes], gap_s: float) -> None:
    size = AT_ONCE if gap_s == 0 else 1
    due = asyncio.get_running_loop().time()
    for at in range(0, len(parts), size):
        joined = b"".join(parts[at : at + size])
        writer.write(b"%x\r\n%s\r\n" % (len(joined), joined))
        await writer.drain()
        due += gap_s
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1_024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    ended = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set_result, None)

    threading.Thread(target=wait, daemon=True).start()
    await ended


if __name__ == "__main__":
    asyncio.run(_serve())

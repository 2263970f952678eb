"""1,000 viewers of streaming turns on one API process, and then Postgres stops: does `/healthz` still answer?"""

from __future__ import annotations

import asyncio
import http.client
import signal
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from tests.bench.figures import Figure, middle, quantile
from tests.bench.house import House
from tests.ground import until

VIEWERS = 1_000
TURNS = 20
ASKED = 150
STOPPED_S = 5.0


def measure(house: House) -> list[Figure]:
    calm = _ask(house, ASKED, 1.0)
    with house.workers(1, TURNS + 8):
        sessions = house.sessions(TURNS)
        house.script(steps=0, text="A word after another. " * 40, chunks=120, gap_s=0.5)
        turns = [house.rig.send(session, "talk for a minute") for session in sessions]
        crowd = _Crowd(house, turns)
        try:
            until(lambda: crowd.seen >= VIEWERS, 60, f"{VIEWERS} viewers that see something")
            watched = _ask(house, ASKED, 2.0)
            before = crowd.events
            house.rig.freeze("postgres", signal.SIGSTOP)
            try:
                stopped = _ask(house, ASKED * 2, STOPPED_S)
            finally:
                house.rig.thaw("postgres")
            during = crowd.events - before
        finally:
            crowd.close()
        for turn in turns:
            house.rig.cancel(turn)
    note = f"middle {middle(stopped):.1f}; while it ran {quantile(watched, 0.99):.1f}; {during:,} events seen meanwhile"
    return [
        Figure(
            f"/healthz, {VIEWERS:,} viewers and Postgres stopped, p99", quantile(stopped, 0.99), "ms",
            quantile(calm, 0.99), "nobody watching", mark=50, note=note,
            detail={"stopped_ms": stopped, "watched_ms": watched, "calm_ms": calm},
        )
    ]  # fmt: skip


def _ask(house: House, times: int, seconds: float) -> list[float]:
    """So many requests spread over so long, each on a connection of its own: a balancer's probe. Milliseconds."""
    parts = urlsplit(str(house.rig.facts["url"]))
    each: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        spent = time.perf_counter() - began
        each.append(spent * 1_000)
        time.sleep(max(0.0, seconds / times - spent))
    return each


class _Crowd:
    """Viewers as plain sockets on one event loop in a thread, which read and count."""

    def __init__(self, house: House, turns: list[str]) -> None:
        parts = urlsplit(str(house.rig.facts["url"]))
        self._address: tuple[str, int] = (parts.hostname or "", parts.port or 80)
        self._token = house.rig.facts["token"]
        self._turns = turns
        self.events = 0
        self.seen = 0
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._task = self._loop.create_task(self._all())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.close()

    async def _all(self) -> None:
        gate = asyncio.Semaphore(50)
        await asyncio.gather(*(self._watch(self._turns[n % len(self._turns)], gate) for n in range(VIEWERS)))

    async def _watch(self, turn: str, gate: asyncio.Semaphore) -> None:
        async with gate:
            reader, writer = await asyncio.open_connection(*self._address)
            head = f"GET /v1/turns/{turn}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self._token}\r\n\r\n"
            writer.write(head.encode("ascii"))
            told = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in told.split(b"\r\n")[0], told
            self.events += (await reader.read(65_536)).count(b"event:")
            self.seen += 1
        try:
            while piece := await reader.read(65_536):
                self.events += piece.count(b"event:")
        finally:
            writer.close()

    def close(self) -> None:
        if self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)

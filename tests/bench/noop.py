"""The no-op that comes first: one Celery task that does nothing, through the same app settings and broker."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Any

import redis

from shared import doorbell
from tests.bench.figures import Figure, middle
from tests.bench.house import House
from tests.ground import ROOT

TASK = "bench.noop"
QUEUE = "bench"
ANSWERS = "bench:noop"


def main(argv: list[str]) -> int:
    """The worker of it: answers each task by the moment at which it ran."""
    (url,) = argv
    client: Any = redis.Redis.from_url(url, socket_timeout=40)  # pyright: ignore[reportUnknownMemberType] - untyped in redis-py
    app = doorbell.celery_app(url, connections=40)

    @app.task(name=TASK, ignore_result=True)
    def _noop() -> None:
        client.rpush(ANSWERS, repr(time.monotonic()))

    logging.getLogger("celery").setLevel(logging.ERROR)
    worker = app.Worker(
        pool="threads", concurrency=32, queues=[QUEUE], loglevel="ERROR", without_gossip=True, without_mingle=True,
        quiet=True, task_events=False,
    )  # fmt: skip
    with contextlib.suppress(SystemExit):
        worker.start()
    return 0


@contextlib.contextmanager
def _worker(url: str) -> Generator[None]:
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.noop", url], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(15)


def measure(house: House) -> list[Figure]:
    url = house.rig.facts["redis_url"]
    client: Any = redis.Redis.from_url(url, socket_timeout=40)  # pyright: ignore[reportUnknownMemberType] - untyped in redis-py
    app = doorbell.celery_app(url, connections=4)
    client.delete(ANSWERS)

    def send() -> float:
        sent = time.monotonic()
        app.send_task(TASK, queue=QUEUE, expires=60, retry=False, ignore_result=True)
        return sent

    with _worker(url):
        send()
        assert client.blpop(ANSWERS, timeout=30), "the no-op's worker did not start"
        there: list[float] = []
        for _ in range(100):
            sent = send()
            there.append((float(client.blpop(ANSWERS, timeout=10)[1]) - sent) * 1_000)
        count = 500
        began = time.monotonic()
        for _ in range(count):
            send()
        last = max(float(client.blpop(ANSWERS, timeout=20)[1]) for _ in range(count))
    each = (last - began) / count
    return [
        Figure("a no-op task through Celery, sent to run", middle(there), "ms", detail={"each_ms": there}),
        Figure("no-op tasks through Celery", 1 / each, "a second"),
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

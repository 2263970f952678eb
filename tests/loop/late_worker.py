"""A worker as a process of its own, to be frozen: it runs what there is, with a tool whose effect is seen from outside,
and says when it has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.ground import ground
from tests.tools import signalling
from workers.pause import Point
from workers.tools import registry


def main(database_url: str, redis_url: str, provider_url: str, home: str, pause_at: str, fifo: str) -> None:
    registry.add(signalling.tool(Path(fifo), Point(pause_at.partition(":")[0])))
    # A lease that the test outlives, and a heart that beats often: a process that thaws has its lease back at once.
    more: dict[str, Any] = {"lease_s": 2, "heartbeat_s": 0.2, "pause_at": pause_at}
    with ground(database_url, redis_url, provider_url, Path(home), **more) as worker:
        sys.stdout.write(f"{worker.ports.life.boot_id}\n")
        sys.stdout.flush()
        sys.stdin.readline()
        ran = worker.look()
        sys.stdout.write(f"ran {ran}\n")
        sys.stdout.flush()
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A worker that tells, when it is asked by a signal, what it has in memory: how many objects of each type, and, with
`--trace`, which lines have allocated most. The product knows nothing of it."""

from __future__ import annotations

import gc
import json
import signal
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from workers import process

_MOST_TYPES, _MOST_LINES = 400, 60


def _told() -> dict[str, Any]:
    gc.collect()
    types = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    found: dict[str, Any] = {"types": dict(types.most_common(_MOST_TYPES)), "threads": threading.active_count()}
    if tracemalloc.is_tracing():
        lines = tracemalloc.take_snapshot().statistics("lineno")[:_MOST_LINES]
        found["lines"] = {str(one.traceback): one.size for one in lines}
    return found


def _answer(folder: Path, asked: threading.Event) -> None:
    for number in range(1, 100):
        asked.wait()
        asked.clear()
        part = folder / f"{number}.part"
        part.write_text(json.dumps(_told()), "utf-8")
        part.replace(folder / f"{number}.json")


def main(argv: list[str]) -> int:
    """`FOLDER [--trace]`: where it tells."""
    folder, *more = argv
    if more == ["--trace"]:
        tracemalloc.start()
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        del number, frame
        asked.set()

    signal.signal(signal.SIGUSR1, ask)
    threading.Thread(target=_answer, args=(Path(folder), asked), daemon=True).start()
    return process.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

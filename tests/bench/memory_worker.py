"""A worker that tells, when it is asked by a file, what it has in memory: how many objects of each type, how much of
what was taken from the system is in use, and, with `--trace`, which lines have allocated most. The product knows
nothing of it. (A signal would be Celery's.)"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import threading
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

from workers import process

_MOST_TYPES, _MOST_LINES = 400, 60
_EVERY_S = 0.1


class _Malloc(ctypes.Structure):
    """glibc's `struct mallinfo2`, over all arenas: bytes, but for the counts."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _malloc() -> dict[str, int]:
    """Bytes that are in use, and that are kept free; nothing where the C library cannot say."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return {"malloc_used": 0, "malloc_free": 0}
    ask.restype = _Malloc
    found = ask()
    return {"malloc_used": found.uordblks + found.hblkhd, "malloc_free": found.fordblks}


def _told() -> dict[str, Any]:
    gc.collect()
    blocks = sys.getallocatedblocks()  # of Python's small objects; before the counting makes its own
    types = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())
    found: dict[str, Any] = {"types": dict(types.most_common(_MOST_TYPES)), "threads": threading.active_count()}
    found |= {"blocks": blocks, **_malloc()}
    if tracemalloc.is_tracing():
        lines = tracemalloc.take_snapshot().statistics("lineno")[:_MOST_LINES]
        found["lines"] = {str(one.traceback): one.size for one in lines}
    return found


def _answer(folder: Path) -> None:
    """`N.ask` is answered by `N.json`, for N from 1 on."""
    for number in range(1, 100):
        while not (folder / f"{number}.ask").exists():
            time.sleep(_EVERY_S)
        part = folder / f"{number}.part"
        part.write_text(json.dumps(_told()), "utf-8")
        part.replace(folder / f"{number}.json")


def main(argv: list[str]) -> int:
    """`FOLDER [--trace]`: where it tells."""
    folder, *more = argv
    if more == ["--trace"]:
        tracemalloc.start()
    threading.Thread(target=_answer, args=(Path(folder),), daemon=True).start()
    return process.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

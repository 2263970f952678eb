"""Several pieces of work at once, for one thread that waits: it alone hears of each end, as it comes.

Nothing of it goes on when the waiting is over, however it ended: what is still at work is told, and waited for.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

MOST = 8
"""At once, of one batch; the rest begin as these end."""
T = TypeVar("T")


def ends(works: Sequence[Callable[[], T]], gone: threading.Event) -> Generator[tuple[int, T]]:
    """Each work's position and what it gave, in the order in which they end. What one of them raised is raised here
    once all have ended. `gone` is set when nobody waits any more: each work is to look at it."""
    if len(works) == 1:
        yield 0, works[0]()
        return
    said: queue.SimpleQueue[tuple[int, T] | BaseException] = queue.SimpleQueue()
    left = iter(range(len(works)))
    lock = threading.Lock()

    def run() -> None:
        while not gone.is_set():
            with lock:
                at = next(left, None)
            if at is None:
                return
            try:
                said.put((at, works[at]()))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to the thread that waits
                said.put(error)

    threads = [threading.Thread(target=run, name="tool-run", daemon=True) for _ in range(min(MOST, len(works)))]
    for thread in threads:
        thread.start()
    first: BaseException | None = None
    try:
        for _ in works:
            ended = said.get()
            if isinstance(ended, BaseException):
                first = first or ended
            else:
                yield ended
    finally:
        gone.set()
        for thread in threads:
            thread.join()
    if first is not None:
        raise first

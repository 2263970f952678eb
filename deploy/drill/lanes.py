"""Several points at once, each in a stack and a process of its own: an outage of a minute is mostly waiting."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from deploy.drill.figures import Figures

ROOT = Path(__file__).resolve().parents[2]


def drill(
    figures: Mapping[str, Figures], units: Sequence[Sequence[str]], lanes: int, *, options: Sequence[str]
) -> None:
    """Run every unit (points that share a stack), `lanes` of them at a time and the first first; fill in `figures`.

    A unit whose process ends without figures leaves its points without runs, and the drill is not clean.
    """
    open_lanes = _Lanes(options)
    with ThreadPoolExecutor(lanes) as pool:
        try:
            for done in pool.map(open_lanes.run, units):
                for one in done:
                    figures[one.point].take(one)
        except BaseException:
            open_lanes.close()
            pool.shutdown(cancel_futures=True)
            raise


@dataclass(slots=True)
class _Lanes:
    options: Sequence[str]
    _live: set[subprocess.Popen[bytes]] = field(default_factory=set[subprocess.Popen[bytes]])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def run(self, points: Sequence[str]) -> list[Figures]:
        named = [word for point in points for word in ("--point", point)]
        command = [sys.executable, "-m", "deploy.main", "drill", "--json", *self.options, *named]
        with self._lock:
            if self._closed:
                return []
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True)
            self._live.add(process)
        out, _ = process.communicate()
        with self._lock:
            self._live.discard(process)
        return list(_read(out))

    def close(self) -> None:
        """End what runs, each with its stack, and begin nothing more."""
        with self._lock:
            self._closed = True
            live = set(self._live)
        for process in live:
            process.send_signal(signal.SIGTERM)
        for process in live:
            process.wait()


def _read(out: bytes) -> Iterator[Figures]:
    try:
        rows = json.loads(out)
    except ValueError:
        return
    for row in rows:
        yield Figures.from_json(row)

"""`./dev bench [NAME…] [--json FILE]`: runs the figures named, prints one table, keeps JSON. Exit 1 if one broke.

`./dev bench day` is the day of a conversation, which nobody gets without asking for it (tests/bench/day). `./dev bench
money` alone is fifty runs; among the others it is three.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # a script's own folder stands first on the path: its names are not top-level ones
    sys.path[0] = str(ROOT)

from tests.bench import (  # noqa: E402 - the path comes first
    claims,
    compaction,
    fallback,
    first_byte,
    flood,
    floor,
    leader,
    limits,
    memory,
    money,
    noop,
    parked,
    providers,
    search,
    steps,
    tools,
    tree,
    turns,
    viewers,
    waiting,
)
from tests.bench.figures import Figure, keep, show  # noqa: E402
from tests.bench.house import House, house  # noqa: E402

BENCHES: Mapping[str, Callable[[House], list[Figure]]] = {
    "noop": noop.measure,
    "steps": steps.measure,
    "turns": turns.measure,
    "first-byte": first_byte.measure,
    "waiting": waiting.measure,
    "viewers": viewers.measure,
    "parked": parked.measure,
    "tree": tree.measure,
    "claims": claims.measure,
    "flood": flood.measure,
    "leader": leader.measure,
    "money": money.measure,
    "limits": limits.measure,
    "fallback": fallback.measure,
    "floor": floor.measure,
    "compaction": compaction.measure,
    "search": search.measure,
    "tools": tools.measure,
    "providers": providers.measure,
    "memory": memory.measure,
}


def main(argv: list[str]) -> int:
    if argv[:1] == ["day"]:  # minutes, not seconds, and arguments of its own
        from tests.bench.day import run as day

        return day.main(argv[1:])
    if argv[:1] == ["money"]:
        return money.main(argv[1:])
    parser = argparse.ArgumentParser(prog="./dev bench", description="The benchmarks. A missed mark fails nothing.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}; default all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every figure, with its single values")
    asked = parser.parse_args(argv)
    unknown = [name for name in asked.names if name not in BENCHES]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    chosen = [name for name in BENCHES if name == "noop" or not asked.names or name in asked.names]
    figures: list[Figure] = []
    broken: list[str] = []
    began = time.monotonic()
    load = os.getloadavg()[0]
    with house() as running:
        for name in chosen:
            at = time.monotonic()
            running.reset()
            try:
                figures += BENCHES[name](running)
            except Exception:  # noqa: BLE001 - one that breaks must not cost the figures of the others; the exit code tells
                broken.append(name)
                traceback.print_exc()
            print(f"{name}: {time.monotonic() - at:.0f} s", file=sys.stderr, flush=True)
    show(figures)
    cores, after, spent = len(os.sched_getaffinity(0)), os.getloadavg()[0], time.monotonic() - began
    print(f"{cores} cores, load before {load:.1f}, after {after:.1f}; {spent:.0f} s in all")
    if asked.json:
        machine = {"cores": cores, "python": platform.python_version(), "load_before": load, "load_after": after}
        keep(figures, asked.json, machine)
    if broken:
        print(f"broken, without a figure: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

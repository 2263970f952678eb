"""Owns `./dev bench`: the benchmarks of a checkout, and the drill at its full length; without any provider's key."""

from __future__ import annotations

from deploy.commands.checkout import ROOT, run_script

DRILL_RUNS = "10"
DRILL_LANES = "3"
"""Most of a point is waiting for a lease or an outage to pass."""


def main(argv: list[str]) -> int:
    if argv[:1] == ["drill"]:
        from deploy.drill import main as drill

        return drill(["--runs", DRILL_RUNS, "--lanes", DRILL_LANES, *argv[1:]])
    return run_script(ROOT / "tests" / "bench" / "run.py", argv)

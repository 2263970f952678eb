"""Owns `./dev test`: every test, without any provider's key; pytest's closing line is the last."""

from __future__ import annotations

import sys

from deploy.commands.checkout import ROOT, become, from_here, run_script, without_keys
from deploy.local.binaries import find_major


def main(argv: list[str]) -> int:
    if "--mutants" in argv:
        return run_script(ROOT / "tests" / "mutants" / "run.py", [word for word in argv if word != "--mutants"])
    print(f"Postgres 15: {find_major(15) or 'not here'}", flush=True)
    return become([sys.executable, "-m", "pytest", "--durations=10", *from_here(argv)], without_keys())

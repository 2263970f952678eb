"""Owns `./dev test`: every test, without any provider's key; pytest's closing line is the last."""

from __future__ import annotations

import sys

from deploy.commands.checkout import become, from_here, without_keys
from deploy.local.binaries import find_major


def main(argv: list[str]) -> int:
    if "--mutants" in argv:
        words = [sys.executable, "tests/mutants/run.py", *(word for word in argv if word != "--mutants")]
    else:
        oldest = find_major(15)
        print(f"Postgres 15: {oldest or 'not here'}", flush=True)
        words = [sys.executable, "-m", "pytest", "--durations=10", *from_here(argv)]
    return become(words, without_keys())

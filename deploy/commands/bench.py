"""Owns `./dev bench`: the benchmarks of a checkout, without any provider's key."""

from __future__ import annotations

import sys

from deploy.commands.checkout import ROOT, become, from_here, without_keys


def main(argv: list[str]) -> int:
    script = ROOT / "tests" / "bench" / "run.py"
    if not script.exists():
        print(f"The benchmarks are part of a checkout, and {script} is not here.", file=sys.stderr)
        return 1
    words = [sys.executable, str(script), *from_here(argv)]
    return become(words, without_keys())

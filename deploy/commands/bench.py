"""Owns `./dev bench`: the benchmarks of a checkout, without any provider's key."""

from __future__ import annotations

from deploy.commands.checkout import ROOT, run_script


def main(argv: list[str]) -> int:
    return run_script(ROOT / "tests" / "bench" / "run.py", argv)

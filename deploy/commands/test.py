"""Owns `./dev test`: every test, without any provider's key; pytest's closing line is the last."""

from __future__ import annotations

import sys

from deploy.commands.checkout import ROOT, become, from_here, run_script, without_keys
from deploy.local.binaries import find_major
from shared.sandbox.tiers import Tier, probe


def main(argv: list[str]) -> int:
    if "--mutants" in argv:
        return run_script(ROOT / "tests" / "mutants" / "run.py", [word for word in argv if word != "--mutants"])
    print(f"Postgres 15: {find_major(15) or 'not here'}", flush=True)
    way = probe()
    kept = "" if way.tier is Tier.ISOLATED else f", and what needs a stronger one is not among the tests: {way.why}"
    print(f"Sandbox: {way.tier}{kept}", flush=True)
    return become([sys.executable, "-m", "pytest", "--durations=10", *_spread(argv), *from_here(argv)], without_keys())


def _spread(argv: list[str]) -> list[str]:
    """The whole suite over two processes, a file on one of them: most tests wait for other processes, not for the
    processor. In the order of their names, so that the long ones, which hold few tests, do not come last and alone. A
    part of it, or a person who gives `-n`, `-s` or `--pdb`, gets one process."""
    whole = not any(word for word in argv if not word.startswith("-"))
    own = any(word.startswith(("-n", "-s", "--pdb", "--dist", "-p")) for word in argv)
    return ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"] if whole and not own else []

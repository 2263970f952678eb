"""Owns `./dev check`: format, lint, types, import rules and the house's own rules, side by side; needs no service."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from deploy.commands.checkout import ROOT, without_keys

PATIENCE = 600
_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    step: Step
    passed: bool
    seconds: float
    said: str


# The slowest first, so that the others run beside it.
STEPS = (
    Step("types", (str(_BIN / "pyright"), "--pythonpath", sys.executable)),
    Step("house rules", (sys.executable, "-m", "pytest", "-q", "tests/architecture")),
    Step("imports", (str(_BIN / "lint-imports"), "--no-logo")),
    Step("lint", (str(_BIN / "ruff"), "check")),
    Step("format", (str(_BIN / "ruff"), "format", "--check")),
)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev check")
    parser.add_argument("--fix", action="store_true", help="format, and mend what ruff can mend, first")
    asked = parser.parse_args(argv)
    if asked.fix:
        for words in (("check", "--fix", "--quiet"), ("format", "--quiet")):
            subprocess.run([str(_BIN / "ruff"), *words], cwd=ROOT, timeout=PATIENCE, check=False)
    started = time.monotonic()
    passed = True
    with ThreadPoolExecutor(max_workers=2) as pool:
        for done in as_completed([pool.submit(_run, step) for step in STEPS]):
            outcome = done.result()
            passed = passed and outcome.passed
            print(
                f"{outcome.step.name:<12} {'ok' if outcome.passed else 'FAILED':<7} {outcome.seconds:5.1f} s",
                flush=True,
            )
            if not outcome.passed:
                print(outcome.said.rstrip(), flush=True)
    print(f"{'check':<12} {'ok' if passed else 'FAILED':<7} {time.monotonic() - started:5.1f} s")
    return 0 if passed else 1


def _run(step: Step) -> Outcome:
    # Without this, pyright asks a registry for a newer release of itself at each run.
    environment = without_keys() | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{_BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    started = time.monotonic()
    try:
        done = subprocess.run(
            step.command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        passed, said = done.returncode == 0, done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        passed, said = False, str(error)
    return Outcome(step, passed, time.monotonic() - started, said)

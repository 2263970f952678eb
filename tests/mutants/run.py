"""`./dev test --mutants`: makes each mutant in a copy of the tree, runs its named test there, and prints the table.

Exit 0 only if every named test passes on the tree as it is and turns red on its mutant.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("api", "deploy", "scheduler", "shared", "tests", "workers", "docs")
TEST_S = 240


def main(argv: list[str]) -> int:
    """Arguments are words: only mutants whose name holds one of them are made."""
    chosen = [m for m in MUTANTS if not argv or any(word in m.name for word in argv)]
    print(f"{len(chosen)} mutants; first their tests on the tree as it is", flush=True)
    sound = _pytest(ROOT, sorted({m.red for m in chosen})) == 0
    if not sound:
        print("a named test fails on the tree as it is: mend that first")
        return 1
    table = Table("mutant", "file", "test that must turn red", "result", "s")
    survived = 0
    for mutant in chosen:
        began = time.monotonic()
        result = _try(mutant)
        survived += result != "red"
        table.add_row(mutant.name, mutant.file, mutant.red.split("::")[-1], result, f"{time.monotonic() - began:.0f}")
        print(f"{result:<9} {mutant.name}", flush=True)
    Console(width=200).print(table)
    print(f"{len(chosen) - survived} red, {survived} survived")
    return 1 if survived else 0


def _try(mutant: Mutant) -> str:
    with tempfile.TemporaryDirectory(prefix="ns-mutant-") as name:
        copy = Path(name)
        for folder in FOLDERS:
            shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / file, copy / file)
        target = copy / mutant.file
        text = target.read_text("utf-8")
        if text.count(mutant.old) != mutant.times:
            return f"stale: found {text.count(mutant.old)} times"
        target.write_text(text.replace(mutant.old, mutant.new), "utf-8")
        code = _pytest(copy, [mutant.red])
    return {0: "SURVIVED", 1: "red"}.get(code, f"error {code}")


def _pytest(folder: Path, tests: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=TEST_S * max(1, len(tests)), check=False, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return 1  # a test that hangs is a test that noticed
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

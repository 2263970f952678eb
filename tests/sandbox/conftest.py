"""Whoever is behind the wall: this process's user and, where that is root, an ordinary one; and a Python for each.

What a machine can show of this is known before its tests are chosen: there is no case for a person or a tier that it
has not, and what is marked `wall` is deselected where there is no wall of that tier. `./dev test` says which it has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shared.sandbox import landlock, seccomp, tiers
from shared.sandbox.tiers import Tier, Way
from workers.sandbox import wall

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 65_534
SITE = next(Path(path) for path in sys.path if path.endswith("site-packages"))
TRIAL = "from shared.sandbox.trial import main; import sys; main(sys.argv[1:])"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "wall(tier): runs something behind a wall of at least this tier")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    lacking = [
        item for item in items if any(wall.weaker(wall.way(), mark.args[0]) for mark in item.iter_markers("wall"))
    ]
    if lacking:
        items[:] = [item for item in items if item not in lacking]
        config.hook.pytest_deselected(items=lacking)


@dataclass(frozen=True)
class Person:
    """`uid` None: as this process is."""

    name: str
    uid: int | None
    python: str

    @property
    def is_root(self) -> bool:
        return self.uid is None and os.geteuid() == 0

    def owns(self, *paths: Path) -> None:
        for path in paths:
            if self.uid is not None:
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def start(self, *arguments: str, env: dict[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
        """A program of this checkout in that person's Python, with this environment and no other."""
        env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"], **(env or {})}
        who: dict[str, Any] = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.Popen([self.python, *arguments], env=env, text=True, **who, **more)

    def tried(self, *programs: str) -> Way:
        """The wall that is raised for this person by one of these, each followed by where it comes from."""
        process = self.start("-c", TRIAL, *programs, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=60)
        return tiers.way_of(json.loads(out))


def person(name: str, folder: Path) -> Person:
    """One of `people`. The folder keeps an interpreter of theirs, where this one is not for them."""
    if name == "root" or os.geteuid() != 0:
        return Person(name, None, sys.executable)
    return Person(name, ORDINARY, _python(folder))


@cache
def people() -> tuple[str, ...]:
    """Whoever can be behind the wall here: this process's user and, where that is root, an ordinary one, unless that
    one may read no Python of this version or not this checkout."""
    if os.geteuid() != 0:
        return ("ordinary",)
    return ("root", "ordinary") if _base() else ("root",)


@cache
def cases() -> tuple[tuple[str, Tier], ...]:
    """Each of `people` with each tier that this machine has for that one."""
    given = [part for path, origin in tiers.programs() for part in (path, origin)]
    strongest = {name: _bare(name).tried(*given).tier for name in people()}
    found = [(name, tier) for name, tier in strongest.items() if tier is Tier.ISOLATED]
    if "root" in strongest and landlock.version() >= landlock.SCOPES_FROM and seccomp.known():
        found.append(("root", Tier.CONFINED))
    return tuple(found)


def _bare(name: str) -> Person:
    """With the standard library and this checkout alone."""
    mine = name == "root" or os.geteuid() != 0
    return Person(name, None, sys.executable) if mine else Person(name, ORDINARY, _base())


@cache
def _base() -> str:
    """An interpreter that an ordinary user may run, who may read this checkout and its packages too; empty if none."""
    for base in (os.path.realpath(sys.executable), f"/usr/bin/python3.{sys.version_info[1]}"):
        env = {"PYTHONPATH": f"{ROOT}:{SITE}", "PYTHONDONTWRITEBYTECODE": "1"}
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                [base, "-c", "import psycopg, shared.sandbox.trial"], env=env, cwd="/", user=ORDINARY, group=ORDINARY,
                extra_groups=[], capture_output=True, check=True,
            )  # fmt: skip
            return base
    return ""


def _python(folder: Path) -> str:
    """Root's own interpreter may lie in its home: another one with this environment's packages."""
    home, version = folder / "venv", f"python3.{sys.version_info[1]}"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    (home / "lib" / version).mkdir(parents=True, exist_ok=True)
    (home / "pyvenv.cfg").write_text(f"home = {Path(_base()).parent}\ninclude-system-site-packages = false\n")
    for link, target in ((home / "bin/python", Path(_base())), (home / "lib" / version / "site-packages", SITE)):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return str(home / "bin/python")

"""Whoever is behind the wall: this process's user and, where that is root, an ordinary one; and a Python for each."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = 65_534
SITE = next(Path(path) for path in sys.path if path.endswith("site-packages"))


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

    def start(self, *arguments: str, env: dict[str, str] | None = None, **more: object) -> subprocess.Popen[str]:
        """A program of this checkout in that person's Python, with this environment and no other."""
        env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"], **(env or {})}
        who: dict[str, object] = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.Popen([self.python, *arguments], env=env, text=True, **who, **more)  # type: ignore[call-overload]


def person(name: str, folder: Path) -> Person:
    """Skips where this machine has nobody like that."""
    if name == "root":
        if os.geteuid() != 0:
            pytest.skip("these tests are not run as root")
        return Person("root", None, sys.executable)
    if os.geteuid() != 0:
        return Person("ordinary", None, sys.executable)
    return Person("ordinary", ORDINARY, _python(folder))


def _python(folder: Path) -> str:
    """An interpreter that another user may run, with this environment's packages; root's own may lie in its home."""
    for base in (os.path.realpath(sys.executable), f"/usr/bin/python3.{sys.version_info[1]}"):
        if not Path(base).exists():
            continue
        home = folder / "venv"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        version = f"python3.{sys.version_info[1]}"
        (home / "lib" / version).mkdir(parents=True, exist_ok=True)
        (home / "pyvenv.cfg").write_text(f"home = {Path(base).parent}\ninclude-system-site-packages = false\n")
        for link, target in ((home / "bin/python", Path(base)), (home / "lib" / version / "site-packages", SITE)):
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        command = [str(home / "bin/python"), "-I", "-c", "import psycopg"]
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(
                command, user=ORDINARY, group=ORDINARY, extra_groups=[], capture_output=True, check=True
            )  # fmt: skip
            return command[0]
    pytest.skip("another user has no Python here that can read this environment")

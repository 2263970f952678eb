"""In a process of its own: a wall of each tier is raised and a run behind it tries to reach out; what held is printed.

A program that is there proves nothing: name spaces may be closed, the program too old, the interpreter out of reach.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from shared.sandbox import landlock, seccomp
from shared.sandbox.box import OWNER, PYTHON, Box
from shared.sandbox.enter import is_root, spawn
from shared.sandbox.tiers import Tier, Way, short

_HELD = "held"
_TRY = (
    'echo x > written || exit 11; if cat "$1" 2> /dev/null; then exit 12; fi; '
    "if (: > /usr/nightshift-probe) 2> /dev/null; then exit 13; fi; "
    'if (: 3<> /proc/sys/kernel/core_pattern) 2> /dev/null; then exit 14; fi; echo "$2"'
)
_MEANS = {
    11: "the workspace cannot be written",
    12: "a file outside could be read",
    13: "the system's own files could be written",
    14: "the kernel's settings could be written",
}
_PYTHON_TRY = "import ast, json, socket, sys; sys.exit(sys.version_info < (3, 9))"
_NEEDED = ("/bin/bash",)


@dataclass(frozen=True, slots=True)
class _Ground:
    workspace: int
    secret: str
    scratch: str


def main(given: list[str]) -> None:
    """Prints a `Way` as JSON. `given`: each bubblewrap's path and where it comes from."""
    with _ground() as ground:
        print(json.dumps(_find(ground, list(zip(given[::2], given[1::2], strict=True))).row()))  # noqa: T201


def _find(ground: _Ground, programs: list[tuple[str, str]]) -> Way:
    missing = [name for name in _NEEDED if not os.access(name, os.X_OK)]
    if missing:
        return Way(Tier.NONE, why=f"{missing[0]} is missing")
    failed = [] if programs else ["isolated: there is no bubblewrap, neither on the PATH nor as a Python wheel"]
    for path, origin in programs:
        way = Way(Tier.ISOLATED, bwrap=path, origin=origin)
        said = _attempt(way, ground)
        if said is None:
            return _with_python(way, ground)
        failed.append(f"isolated, with bubblewrap from {origin}: {said}")
    said = _lacks_confined()
    if said is None:
        said = _attempt(Way(Tier.CONFINED), ground)
    if said is None:
        return replace(_with_python(Way(Tier.CONFINED), ground), why=short("; ".join(failed)))
    failed.append(f"confined: {said}")
    return Way(Tier.NONE, why=short("; ".join(failed)))


def _lacks_confined() -> str | None:
    if not is_root():
        return "a user of its own takes a worker that is root"
    if landlock.version() < landlock.SCOPES_FROM:
        return f"Landlock version {landlock.version()} is too old (Linux 6.12 brings the one that is needed)"
    return None if seccomp.known() else "system calls of this kind of machine are not known here"


def _attempt(way: Way, ground: _Ground) -> str | None:
    """None where the wall held, else what was wrong."""
    try:
        box = Box(("/bin/bash", "-c", _TRY, "bash", ground.secret, _HELD), ground.workspace)
        code, said = _run(way, box, ground)
    except OSError as error:
        return f"{error.strerror or error}"
    if code == 0 and said.strip() == _HELD:
        return None
    return _MEANS.get(code) or said.strip() or f"it ended with {code}"


def _with_python(way: Way, ground: _Ground) -> Way:
    """The worker's own interpreter where a run may see it, else the system's."""
    for python, folder in _interpreters(way):
        command = (*interpreter(python, folder), "-I", "-S", "-c", _PYTHON_TRY)
        fd = os.open(folder, os.O_PATH) if folder else None
        try:
            code, _ = _run(way, Box(command, ground.workspace, python=fd), ground)
        except OSError:
            continue
        finally:
            if fd is not None:
                os.close(fd)
        if code == 0:
            return replace(way, python=python, python_folder=folder)
    return way


def _interpreters(way: Way) -> Iterator[tuple[str, str]]:
    base = Path(os.path.realpath(sys.base_prefix))
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if base.is_relative_to("/usr"):
        yield str(base / "bin" / name), ""
    elif way.tier is Tier.ISOLATED:
        yield f"{PYTHON}/bin/{name}", str(base)
    for path in ("/usr/local/bin/python3", "/usr/bin/python3"):
        if os.access(path, os.X_OK):
            yield path, ""


def interpreter(python: str, folder: str) -> tuple[str, ...]:
    """The command that is this interpreter. One that was moved looks for its own library where it was built for."""
    return ("/usr/bin/env", f"LD_LIBRARY_PATH={PYTHON}/lib", python) if folder else (python,)


def _run(way: Way, box: Box, ground: _Ground) -> tuple[int, str]:
    fd = os.memfd_create("output")
    try:
        pid = spawn(way, box, output=fd, scratch=ground.scratch)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code, os.pread(fd, 4096, 0).decode("utf-8", "replace")
    finally:
        os.close(fd)


@contextmanager
def _ground() -> Generator[_Ground]:
    """A workspace, and a file outside it that anybody may read who gets there."""
    home = Path(tempfile.mkdtemp(prefix="nightshift-probe-"))
    try:
        home.chmod(0o755)
        secret = home / "outside"
        secret.mkdir()
        (secret / "secret").write_text("secret")
        folders = [home / "workspace", home / "scratch"]
        for folder in folders:
            folder.mkdir()
            if is_root():
                os.chown(folder, OWNER, OWNER)
        fd = os.open(folders[0], os.O_PATH | os.O_DIRECTORY)
        yield _Ground(fd, str(secret / "secret"), str(folders[1]))
        os.close(fd)
    finally:
        shutil.rmtree(home, ignore_errors=True)

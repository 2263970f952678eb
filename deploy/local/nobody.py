"""Owns where Postgres works: in the home, or, where root may not use a user namespace, in a folder of nobody's."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from deploy.local.binaries import PostgresPrograms
from deploy.local.explain import os_error
from deploy.local.home import Home
from deploy.local.launch import NOBODY
from deploy.local.spawn import Identity

# Outside every private folder, and kept over a restart of the machine, unlike /tmp.
OUTSIDE = Path("/var/tmp")  # noqa: S108 - the folder made in it is root's, 0711


@dataclass(frozen=True, slots=True)
class Place:
    programs: Path
    data: Path
    sockets: Path
    major: int
    identity: Identity

    def own(self, path: Path) -> None:
        """Hands a file of ours to whom the server runs as."""
        if self.identity is Identity.NOBODY:
            os.chown(path, NOBODY, NOBODY)


def place_for(home: Home, programs: PostgresPrograms, identity: Identity) -> Place:
    if identity is not Identity.NOBODY:
        return Place(programs.folder, home.postgres, home.sockets, programs.major, identity)
    name = hashlib.sha256(os.fsencode(home.root)).hexdigest()[:12]
    root = OUTSIDE / f"nightshift-{name}"
    sockets = root / "run"
    try:
        root.mkdir(mode=0o711, exist_ok=True)
        root.chmod(0o711)
        sockets.mkdir(mode=0o700, exist_ok=True)
        os.chown(sockets, NOBODY, NOBODY)
        data = root / "data"
        data.mkdir(mode=0o700, exist_ok=True)
        os.chown(data, NOBODY, NOBODY)
        folder = programs.folder if _open_to_all(programs.folder) else _carry(programs.folder, root / "programs")
    except OSError as error:
        raise os_error(error, "making", root) from error
    return Place(folder, data / "postgres", sockets, programs.major, identity)


def _open_to_all(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents))


def _carry(folder: Path, target: Path) -> Path:
    """The wheel's programs find their libraries beside their package, so that relation is copied too."""
    package = folder.parent.parent
    copied = target / package.name / folder.relative_to(package)
    if not (copied / "postgres").exists():
        shutil.rmtree(target, ignore_errors=True)
        fresh = target.with_name("programs.new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(package, fresh / package.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, fresh / libraries.name)
        fresh.rename(target)
    return copied

"""Owns whose a provider's key file is, by where it lies: `keys/<provider>/` is the team's,
`keys/people/<name>/<provider>/` one person's, `keys/jobs/<name>/<provider>/` one job's.

No path is ever made of a name: the folders that are there are listed, and one is somebody's only where its name is
theirs, character for character. So no name leads anywhere else, and on a disk that takes `Ann` for `ann` one is not
the other. A link is nobody's.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shared.secrets import SecretUnusable, read_file

Kind = Literal["people", "jobs"]
KINDS: tuple[Kind, ...] = ("people", "jobs")
MOST = 20
"""Keys of one provider and one owner that are used."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A person or a job, by the name that they have in the database."""

    kind: Kind
    name: str

    @property
    def folder(self) -> str:
        return f"{self.kind}/{self.name}"


def owner(job: object, job_name: str | None, person: str | None) -> Owner | None:
    """Whose keys a turn has beside the team's: its job's where it is one's run, else its person's. None where nobody is
    known for it. A job's run never has a person's, whatever has become of its job."""
    if job is not None:
        return Owner("jobs", job_name) if job_name else None
    return Owner("people", person) if person else None


def folder_of(provider: str) -> str:
    return provider.replace("/", "-")


def owners(keys: Path) -> tuple[tuple[Owner, Path], ...]:
    """Whoever has a folder, in the order of their names."""
    return tuple((Owner(kind, path.name), path) for kind in KINDS for path in folders(keys / kind))


def of_owner(keys: Path, owner: Owner) -> Path | None:
    return next((path for path in folders(keys / owner.kind) if path.name == owner.name), None)


def files(folder: Path) -> tuple[tuple[str, str], ...]:
    """Names and keys of the files of a folder, by name. What may not be used is left out: `unusable` names it."""
    found: list[tuple[str, str]] = []
    for path in _inside(folder):
        try:
            value = read_file(path)
        except SecretUnusable:
            continue
        if value:
            found.append((path.name, value))
    return tuple(found)


def every(keys: Path) -> tuple[tuple[Owner | None, str], ...]:
    """Every key of every scope with whose it is, None for the team's; also of providers that nobody here speaks to."""
    return tuple((owner, value) for owner, folder in _all(keys) for _, value in files(folder))


def unusable(keys: Path) -> tuple[str, ...]:
    """What is wrong with files and folders that are there, a sentence each."""
    found: list[str] = []
    for kind in KINDS:
        those = set(folders(keys / kind))
        strange = (path for path in _inside(keys / kind) if path not in those)
        found += (f"keys/{kind}/{shown(path.name)} is no folder of its own" for path in strange)
    for _, folder in _all(keys):
        for path in _inside(folder):
            try:
                read_file(path)
            except SecretUnusable as error:
                found.append(error.message)
    return tuple(found)


def folders(folder: Path) -> tuple[Path, ...]:
    """Its folders by name: no links, and no name that is no text."""
    return tuple(p for p in _inside(folder) if _is_text(p.name) and p.is_dir() and not p.is_symlink())


def shown(name: str) -> str:
    """A name that may hold anything, on one line."""
    return ascii(name)[:120]


def _all(keys: Path) -> Generator[tuple[Owner | None, Path]]:
    for path in folders(keys):
        if path.name not in KINDS:
            yield None, path
    for owner, folder in owners(keys):
        for path in folders(folder):
            yield owner, path


def _inside(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()


def _is_text(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)

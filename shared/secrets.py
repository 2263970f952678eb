"""Keys: from the environment or from files, never from the database; each of the team, of a person, or of a job.

`NIGHTSHIFT_SECRET_NAME` is the team's. A file is `team/NAME`, `person/<id>/NAME` or `job/<id>/NAME` in the folder of
secrets, readable by its owner alone. A turn gets those of its authority: its job's, then those of the person who
started it, then the team's. Whatever was read once is known to the redactor (shared/redact.py).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import UUID

from shared.errors import NightshiftError

if TYPE_CHECKING:  # the settings know by what a variable of a secret begins
    from shared.settings import Settings

VARIABLE = "NIGHTSHIFT_SECRET_"
NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_MOST_BYTES = 64 * 1024
_MOST_FILES = 2_000


@dataclass(frozen=True, slots=True)
class Authority:
    """On whose behalf: `person` where a person alone started the turn and nobody else spoke in it, `job` where it is a
    job's. Neither: the team's own keys and no others."""

    person: UUID | None = None
    job: UUID | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Where a key is looked for, in this order."""
        of_job = () if self.job is None else (f"job/{self.job}",)
        of_person = () if self.person is None else (f"person/{self.person}",)
        return (*of_job, *of_person, "team")


TEAM = Authority()


@dataclass(frozen=True, slots=True)
class Secret:
    """`scope` says whose it is. Its value shows in no representation."""

    name: str
    scope: str
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, {self.scope!r})"


class SecretMissing(NightshiftError):
    """Nobody whose keys may be used here has one of that name."""

    code = "secret_missing"


class SecretUnusable(NightshiftError):
    """It is there and may not be used: others can read it, or it is no text."""

    code = "secret_unusable"


@dataclass(frozen=True, slots=True)
class Secrets:
    """All that there are: the folder is looked into anew each time, so a key that is exchanged holds at once."""

    folder: Path
    environ: Mapping[str, str]

    def find(self, name: str, authority: Authority) -> Secret:
        """The nearest of that name. Raises SecretMissing and SecretUnusable, which name it and no value."""
        if NAME.fullmatch(name) is None:
            raise SecretMissing(f"{name[:80]!r} is no name of a secret: capital letters, digits and underscores")
        for scope in authority.scopes:
            value = read_file(self.folder / scope / name)
            if value is None and scope == "team":
                value = self.environ.get(VARIABLE + name)
            if value:
                return Secret(name, scope, value)
        raise SecretMissing(
            f"there is no secret {name} for this: set {VARIABLE}{name}, or put it into the file {name} in team/, "
            f"person/<id>/ or job/<id>/ of the folder of secrets"
        )

    def all(self) -> tuple[Secret, ...]:
        """Every key of whatever scope, for the redactor. One that cannot be read is none that could leak."""
        found = [
            Secret(name.removeprefix(VARIABLE), "team", value)
            for name, value in self.environ.items()
            if name.startswith(VARIABLE) and value
        ]
        for path in sorted(self.folder.glob("*/**/*"))[:_MOST_FILES]:
            if NAME.fullmatch(path.name) is None:
                continue
            try:
                value = read_file(path)
            except SecretUnusable:
                continue
            if value:
                found.append(Secret(path.name, path.parent.relative_to(self.folder).as_posix(), value))
        return tuple(found)

    def unusable(self) -> tuple[str, ...]:
        """What is wrong with files that are there, a sentence each: for `doctor`."""
        found: list[str] = []
        for path in sorted(self.folder.glob("*/**/*"))[:_MOST_FILES]:
            try:
                read_file(path)
            except SecretUnusable as error:
                found.append(error.message)
        return tuple(found)


def read_file(path: Path) -> str | None:
    """The text of a secret's file, less the end of its last line; None where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            return None
        shown = "/".join(path.parts[-3:])
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise SecretUnusable(f"the secret {shown} is no small file")
        if found.st_mode & 0o077:
            raise SecretUnusable(f"the secret {shown} can be read by others: chmod 600 it")
        return os.read(fd, _MOST_BYTES).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise SecretUnusable(f"the secret {path.name} is no text") from error
    finally:
        os.close(fd)


def known(settings: Settings, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Every key that a process with these settings could ever come by: what no text of its may hold."""
    addresses = (settings.database_url, settings.database_direct_url, settings.redis_url)
    passwords = (urlsplit(address).password for address in addresses if address)
    from shared.providers.credentials import known_keys  # noqa: PLC0415 - which reads files as this module does

    word = settings.provider_key if settings.rehearsal else ""  # the rehearsal's is a word, and stands in its name
    keys = (one for one in (settings.provider_key, *known_keys(settings, environ)) if one != word)
    own = (*keys, settings.token, settings.rehearsal_token, *passwords)
    found = (secret.value for secret in Secrets(settings.secrets_folder, environ).all())
    return tuple(value for value in (*own, *found) if value)

"""Owns where a provider's keys are: the environment, or files. Never the database, and no text of ours shows one.

The process's own provider has NIGHTSHIFT_PROVIDER_KEY (or its own variable, such as ANTHROPIC_API_KEY); each provider
has the variable of its declaration, and the same with `_2` to `_20` behind it (Bedrock also AWS's own three, as one
key `id:secret[:session token]`, which is how a file has it); and the files of `keys/<provider>/` in
the home (a `/` of its name written as `-`), each one key, readable by its owner alone. A file is read anew each time,
so a key that is exchanged holds at once.

These are the team's. `keys/people/<name>/<provider>/` and `keys/jobs/<name>/<provider>/` have those of one person and
of one job (`scopes`): a turn's own go before the team's, and nobody else's are ever looked at for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from shared.providers import aws, resolve, scopes
from shared.providers.declaration import Auth
from shared.providers.scopes import MOST, Owner
from shared.providers.table import TABLE, known

if TYPE_CHECKING:
    from shared.settings import Settings

NO_KEY = "none"
"""What is sent where a local server asks for none."""


@dataclass(frozen=True, slots=True)
class Credential:
    """One key. `id` names it, with a part of its digest: a key that was exchanged is another one. Of a person or a job
    (`owner`; None is the team) it begins with a folder, which no file's name can: two scopes never share one."""

    provider: str
    name: str
    key: str = field(repr=False)
    owner: Owner | None = field(default=None, repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        digest = sha256(self.key.encode("utf-8", "replace")).hexdigest()[:8]
        whose = "" if self.owner is None else f"{self.owner.folder}/"
        object.__setattr__(self, "id", f"{self.provider}:{whose}{self.name}:{digest}")


def credentials(settings: Settings, provider: str, environ: Mapping[str, str]) -> tuple[Credential, ...]:
    """The team's keys of a provider in their order, each once. Empty where there is none."""
    declared = known(provider)
    own = provider == resolve.name(settings)
    found: dict[str, str] = {}
    if own and settings.provider_key:
        found.setdefault(settings.provider_key, "main")
    if declared is not None and declared.key_variable and "/" not in provider:
        names = (declared.key_variable, *(f"{declared.key_variable}_{n}" for n in range(2, MOST + 1)))
        for name in names if not own or not settings.rehearsal else ():
            if environ.get(name):
                found.setdefault(environ[name], name.lower())
        signing = aws.from_environ(environ) if declared.auth is Auth.AWS and not (own and settings.rehearsal) else ""
        if signing:
            found.setdefault(signing, aws.ID.lower())
    for name, value in scopes.files(settings.keys_folder / scopes.folder_of(provider))[:MOST]:
        found.setdefault(value, name)
    if not found and (own or (declared is not None and (declared.local or not declared.key_variable))):
        found[NO_KEY] = "none"
    return tuple(Credential(provider, name, key) for key, name in found.items())


def own(settings: Settings, provider: str, owner: Owner) -> tuple[Credential, ...]:
    """What that person, or that job, has of their own at a provider. Empty where there is none."""
    folder = scopes.of_owner(settings.keys_folder, owner)
    found: dict[str, str] = {}
    for name, value in scopes.files(folder / scopes.folder_of(provider))[:MOST] if folder is not None else ():
        found.setdefault(value, name)
    return tuple(Credential(provider, name, key, owner) for key, name in found.items())


def owned(settings: Settings) -> dict[tuple[str, Owner], int]:
    """Who has keys of their own at which provider, and how many."""
    providers = {scopes.folder_of(name): name for name in (*TABLE, *names(settings))}
    found: dict[tuple[str, Owner], int] = {}
    for owner, folder in scopes.owners(settings.keys_folder):
        for path in scopes.folders(folder):
            count = len({value for _, value in scopes.files(path)[:MOST]})
            if count and path.name in providers:
                found[providers[path.name], owner] = count
    return found


def names(settings: Settings) -> tuple[str, ...]:
    """The providers that are configured, the process's own first."""
    return tuple(dict.fromkeys((resolve.name(settings), *settings.providers)))


def known_keys(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every key of every provider and every scope that is here, for the redactor. A rehearsal's own is a word."""
    none = {NO_KEY, settings.provider_key} if settings.rehearsal else {NO_KEY}
    linked = {one for links in resolve.chains_of(settings) for one in links}
    every = dict.fromkeys((*names(settings), *linked, *TABLE))
    keys = [one.key for name in every for one in credentials(settings, name, environ) if one.key not in none]
    keys += [value for _, value in scopes.every(settings.keys_folder)]
    return tuple(part for key in keys for part in aws.secrets_in(key))

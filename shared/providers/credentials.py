"""Owns where a provider's keys are: the environment, or files. Never the database, and no text of ours shows one.

The process's own provider has NIGHTSHIFT_PROVIDER_KEY (or its own variable, such as ANTHROPIC_API_KEY); each provider
has the variable of its declaration, and the same with `_2` to `_20` behind it (Bedrock also AWS's own three, as one
key `id:secret[:session token]`, which is how a file has it); and the files of `keys/<provider>/` in
the home (a `/` of its name written as `-`), each one key, readable by its owner alone. A file is read anew each time,
so a key that is exchanged holds at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from shared.providers import aws, resolve
from shared.providers.declaration import Auth
from shared.providers.table import known
from shared.secrets import SecretUnusable, read_file

if TYPE_CHECKING:
    from shared.settings import Settings

MOST = 20
NO_KEY = "none"
"""What is sent where a local server asks for none."""


@dataclass(frozen=True, slots=True)
class Credential:
    """One key. `id` names it, with a part of its digest: a key that was exchanged is another one."""

    provider: str
    name: str
    key: str = field(repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        digest = sha256(self.key.encode("utf-8", "replace")).hexdigest()[:8]
        object.__setattr__(self, "id", f"{self.provider}:{self.name}:{digest}")


def credentials(settings: Settings, provider: str, environ: Mapping[str, str]) -> tuple[Credential, ...]:
    """A provider's keys in their order, each once. Empty where there is none."""
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
    folder = settings.keys_folder / provider.replace("/", "-")
    for path in sorted(folder.glob("*"))[:MOST] if folder.is_dir() else ():
        try:
            value = read_file(path)
        except SecretUnusable:
            continue  # `doctor` names it
        if value:
            found.setdefault(value, path.name)
    if not found and (own or (declared is not None and (declared.local or not declared.key_variable))):
        found[NO_KEY] = "none"
    return tuple(Credential(provider, name, key) for key, name in found.items())


def names(settings: Settings) -> tuple[str, ...]:
    """The providers that are configured, the process's own first."""
    return tuple(dict.fromkeys((resolve.name(settings), *settings.providers)))


def known_keys(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Every key of every provider that may be spoken to, for the redactor."""
    linked = {one for links in resolve.chains_of(settings) for one in links}
    every = dict.fromkeys((*names(settings), *linked))
    keys = (one.key for name in every for one in credentials(settings, name, environ) if one.key != NO_KEY)
    return tuple(part for key in keys for part in aws.secrets_in(key))

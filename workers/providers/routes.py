"""Owns which providers this process can speak to: their declarations, keys and clients, each made when first asked for.

Invariant: a session's calls go to the provider that it names, and to no other under its name.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import SettingsError
from shared.providers import credentials as keys
from shared.providers import resolve
from shared.providers.credentials import Credential
from shared.providers.declaration import Declaration
from shared.providers.scopes import Owner
from shared.redact import REDACTOR
from shared.settings import Settings
from workers.manners.fleet import Fleet
from workers.manners.kept import put
from workers.manners.terms import Limit
from workers.providers.client import Client, Provider, close_client, open_client

LOOK_S = 5.0
"""How old the list of a provider's keys may be: files are read again after it, or at once where a key was refused."""
MOST_CLIENTS = 64


@dataclass(slots=True)
class _Pool:
    keys: tuple[Credential, ...]
    read_at: float


class Routes:
    """Shared by every thread of the process. `fleet` knows what each key may be asked."""

    def __init__(self, settings: Settings, fleet: Fleet, environ: Mapping[str, str]) -> None:
        self.fleet = fleet
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._declared: dict[str, Declaration] = {}
        self._pools: dict[tuple[str, Owner | None], _Pool] = {}
        self._clients: dict[str, Client] = {}
        self._learned_at = 0.0

    def declared(self, provider: str) -> Declaration:
        """Raises SettingsError where this process cannot speak to it."""
        found = self._declared.get(provider)
        if found is None:
            found = self._declared[provider] = resolve.of_provider(self._settings, provider)
        return found

    def pool(self, provider: str, owner: Owner | None = None, *, anew: bool = False) -> tuple[Credential, ...]:
        """The keys that a person or a job has of their own, or the team's, in their order."""
        pool = self._pools.get((provider, owner))
        if pool is None or anew or time.monotonic() - pool.read_at > LOOK_S:
            if owner is None:
                found = keys.credentials(self._settings, provider, self._environ)
            else:
                found = keys.own(self._settings, provider, owner)
            if time.monotonic() - self._learned_at > LOOK_S or pool is None or found != pool.keys:
                self._learned_at = time.monotonic()  # one that came later, whosever: no text of ours may hold it either
                REDACTOR.learn(keys.known_keys(self._settings, self._environ))
            pool = _Pool(found, time.monotonic())
            with self._lock:
                put(self._pools, (provider, owner), pool)
        return pool.keys

    def pools(self, provider: str, owner: Owner | None) -> tuple[tuple[Credential, ...], ...]:
        """What a turn may use: its own keys, then the team's where it has none or they may stand in. None is empty."""
        own = self.pool(provider, owner) if owner is not None else ()
        if own and not self._settings.team_keys_stand_in:
            return (own,)
        team = self.pool(provider)
        if own:  # a call without a key stands in for none
            team = tuple(one for one in team if one.key != keys.NO_KEY)
        return tuple(one for one in (own, team) if one)

    def refreshed(self, credential: Credential) -> bool:
        """Whether the key is another one by now, read again from where it is."""
        for one in self.pool(credential.provider, credential.owner, anew=True):
            if one.name == credential.name:
                return one.key != credential.key
        return False

    def limit(self, provider: str) -> Limit:
        """As configured, for each of its keys."""
        told = self._settings.providers.get(provider)
        if told is None:
            return Limit()
        return Limit(float(told.requests_per_minute or 0), float(told.tokens_per_minute or 0))

    def client(self, credential: Credential) -> Client:
        """Raises SettingsError where the key cannot be one."""
        with self._lock:
            found = self._clients.get(credential.id)
            if found is None:
                declared = self.declared(credential.provider)
                found = open_client(Provider(declared.base_url, credential.key, declared.wire, declared=declared))
                while len(self._clients) >= MOST_CLIENTS:  # keys that were exchanged; calls on them end undisturbed
                    close_client(self._clients.pop(next(iter(self._clients))))
                self._clients[credential.id] = found
        return found

    def check(self) -> None:
        """Raises SettingsError where the process's own provider cannot be what is set."""
        own = resolve.name(self._settings)
        resolve.check_key(self._settings.provider_key, self.declared(own))
        for one in self.pool(own):
            self.client(one)

    def close(self) -> None:
        with self._lock:
            for client in self._clients.values():
                close_client(client)
            self._clients.clear()


def unset(provider: str) -> SettingsError:
    return SettingsError(
        f"there is no key for {provider} here: set its variable, or put it into a file of keys/{provider} in the home"
    )

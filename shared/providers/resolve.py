"""Owns which provider a process speaks to and in which wire: what is set explicitly, the provider's name, the base URL,
the default, in this order. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from shared import models
from shared.errors import SettingsError
from shared.models import Limits
from shared.providers import aws, chains, table
from shared.providers.declaration import PATHS, Auth, Declaration, Head, Reasoning
from shared.providers.table import ANTHROPIC, BEDROCK, CUSTOM, OPENAI, TABLE
from shared.request.cache_plan import ANTHROPIC as MARKED
from shared.request.cache_plan import UNMARKED
from shared.request.dialect import CallIds, Dialect, Wire

if TYPE_CHECKING:
    from shared.settings import Settings  # which reads this module to know which key is meant

URL, KEY = "NIGHTSHIFT_PROVIDER_BASE_URL", "NIGHTSHIFT_PROVIDER_KEY"
_INTERNAL = (".local", ".internal", ".lan", ".home.arpa", ".svc", ".localhost", ".invalid", ".test")


def resolve(*, kind: str | None, provider: str | None, base_url: str, model: str) -> Declaration:
    """The declaration in force, `base_url` checked and filled in. Raises SettingsError with what to change."""
    found = _named(provider, base_url, kind, model)
    if kind is not None and found.wire != kind:
        found = _in_wire(found, Wire(kind))
    url = checked_url(base_url or found.base_url, found.wire) if base_url or found.base_url else ""
    if not url:
        raise SettingsError(f"{URL}: the provider {found.name!r} has no address of its own: set it")
    return replace(found, base_url=url)


def declared(settings: Settings) -> Declaration:
    """The provider of a process."""
    return resolve(
        kind=settings.provider_kind, provider=settings.provider, base_url=settings.provider_base_url,
        model=settings.model,
    )  # fmt: skip


def name(settings: Settings) -> str:
    """The provider's name, as sessions and calls carry it. Raises SettingsError where it is none that we know."""
    return _named(settings.provider, settings.provider_base_url, settings.provider_kind, settings.model).name


def with_key(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with the key that the environment has under the provider's own name, where none was set. No other
    provider's key is looked at: it would be sent to strangers."""
    if settings.provider_key:
        return settings
    found = _named(settings.provider, settings.provider_base_url, settings.provider_kind, settings.model)
    key = environ.get(found.key_variable, "") if found.key_variable else ""
    if not key and found.auth is Auth.AWS:
        key = aws.from_environ(environ)
    return settings.model_copy(update={"provider_key": key}) if key else settings


def of_provider(settings: Settings, provider: str) -> Declaration:
    """What a provider is to this process, by the name that sessions carry: its own, or one that is configured beside
    it, or one whose declaration has an address. Raises SettingsError where it has none."""
    if provider == name(settings):
        return declared(settings)
    told = settings.providers.get(provider)
    found = table.known(provider)
    if found is None:
        raise SettingsError(f"[providers.{provider}]: it is not one of {', '.join(TABLE)}")
    kind, url = (told.kind, told.base_url) if told is not None else (None, "")
    made = resolve(kind=kind, provider=found.name, base_url=url, model="")
    return replace(made, name=provider) if "/" in provider else made


def chains_of(settings: Settings) -> tuple[tuple[str, ...], ...]:
    """The providers that chains name."""
    of_profiles = chains.fallbacks(settings.fallbacks).values()
    of_work = [one for one in chains.auxiliary(settings.auxiliary) if one is not None]
    return (*(tuple(one.provider for one in links) for links in of_profiles), tuple(one.provider for one in of_work))


def check(settings: Settings) -> None:
    """Raises SettingsError where a chain or a provider beside the process's own cannot be what is set."""
    for provider in dict.fromkeys((*settings.providers, *(one for links in chains_of(settings) for one in links))):
        of_provider(settings, provider)


def limits(settings: Settings, provider: str, model: str) -> Limits:
    """What a model's window holds: as configured, as the catalogue has it, as is usual at that provider."""
    known = table.known(provider)
    return models.limits(model, told=settings.context_window, otherwise=known.window if known else None)


def _named(provider: str | None, base_url: str, kind: str | None, model: str) -> Declaration:
    if provider:
        found = TABLE.get(provider.strip().lower())
        if found is None:
            raise SettingsError(f"NIGHTSHIFT_PROVIDER: {provider!r} is not one of {', '.join(TABLE)}")
        return found
    if base_url:
        host = (_split(base_url).hostname or "").lower()
        for one in TABLE.values():
            if one.is_at(host):
                return one
        if kind == Wire.CONVERSE:
            return BEDROCK
        if kind == Wire.ANTHROPIC or (kind is None and model.startswith("claude-")):
            return ANTHROPIC
        return CUSTOM
    if kind == Wire.CONVERSE:
        return BEDROCK
    return ANTHROPIC if kind in (None, Wire.ANTHROPIC) else OPENAI


def _in_wire(found: Declaration, wire: Wire) -> Declaration:
    """A provider spoken to in another wire than its own, as was explicitly asked."""
    by = found.name
    match wire:
        case Wire.ANTHROPIC:
            return replace(
                found, dialect=Dialect(wire, by), route=MARKED, routes=None, head=Head(), reasoning=Reasoning.ITEMS
            )
        case Wire.RESPONSES:
            dialect = Dialect(wire, by, call_ids=CallIds.LONG)
            return replace(
                found, dialect=dialect, route=UNMARKED, routes=None, head=OPENAI.head, reasoning=Reasoning.ITEMS
            )
        case Wire.CONVERSE:
            dialect = replace(BEDROCK.dialect, by=by)
            return replace(
                BEDROCK,
                name=found.name,
                dialect=dialect,
                base_url=found.base_url,
                auth=found.auth,
                hosts=found.hosts,
                key_variable=found.key_variable,
                key_prefix=found.key_prefix,
                prices=found.prices,
            )
        case Wire.CHAT:
            head = Head("max_completion_tokens", user=True, cache_key=True) if found is OPENAI else CUSTOM.head
            dialect = replace(CUSTOM.dialect, by=by) if found is not OPENAI else Dialect(wire, by)
            return replace(found, dialect=dialect, route=UNMARKED, routes=None, head=head, reasoning=Reasoning.NONE)


def checked_url(told: str, wire: Wire) -> str:
    """The address in the form that the wire's path is put behind: no slash at its end, no endpoint; with the version
    where the wire has it in the base. A proxy's own path stays. Raises SettingsError."""
    split = _split(told)
    if split.scheme not in ("http", "https") or not split.hostname or split.username or split.password:
        raise SettingsError(f"{URL}: it must be http or https, with a host, without password")
    if split.query or split.fragment:
        raise SettingsError(f"{URL}: it ends with the path: what follows '?' or '#' belongs elsewhere")
    if split.scheme == "http" and not is_near(split.hostname):
        raise SettingsError(f"{URL}: plain HTTP to a public host would show the key to everybody: use https")
    path = split.path.rstrip("/")
    for of_wire, known in PATHS.items():
        path = path if of_wire is Wire.CONVERSE else path.removesuffix(known)
    path = path.rstrip("/")
    if wire is Wire.CONVERSE:
        path = path.partition("/model/")[0]
    elif wire is Wire.ANTHROPIC:
        path = path.removesuffix("/v1")
    elif not path:
        path = "/v1"
    return f"{split.scheme}://{split.netloc}{path}"


def is_near(host: str) -> bool:
    """Whether a host is this machine or one of the same network: its name says so, or its address does."""
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith(_INTERNAL)
    return not address.is_global


def check_key(key: str, found: Declaration) -> None:
    """Raises SettingsError where a key is missing, or is plainly another provider's, for an address that is known to be
    the provider's own: what stands behind another one may take any key, or none."""
    host = (_split(found.base_url).hostname or "").lower()
    if not found.is_at(host):
        return
    if not key.strip():
        raise SettingsError(f"{KEY}: {found.name} asks for a key and none is set (also read: {found.key_variable})")
    for one in TABLE.values():
        if one.key_prefix and key.startswith(one.key_prefix) and one.name != found.name:
            raise SettingsError(f"{KEY}: it is a key of {one.name} and the calls go to {found.name} (not shown)")


def _split(told: str) -> SplitResult:
    try:
        split = urlsplit(told.strip())
        _ = split.port
    except ValueError as error:
        raise SettingsError(f"{URL}: it is not an address such as https://host:port") from error
    return split

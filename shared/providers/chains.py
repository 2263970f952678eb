"""Owns which models stand in for which: the chain of a profile, and the one of auxiliary work. Pure.

A link is `provider:model`; a chain is links with `>` between, tried in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import SettingsError
from shared.providers.table import known

if TYPE_CHECKING:
    from shared.settings import Settings  # which reads this module to judge what is set

FALLBACKS, AUXILIARY = "NIGHTSHIFT_FALLBACKS", "NIGHTSHIFT_AUXILIARY"
SESSION = "session"
"""In the auxiliary chain: whatever the session speaks to, which has its prefix in its cache."""


@dataclass(frozen=True, slots=True)
class Link:
    """One model at one provider, by their names with us."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def link(told: str, variable: str) -> Link:
    """`provider:model`; a model's own name may hold colons and slashes. Raises SettingsError."""
    provider, colon, model = (part.strip() for part in told.partition(":"))
    if not colon or not model or known(provider) is None:
        raise SettingsError(f"{variable}: '{told.strip()}' is not provider:model with a provider that is known")
    return Link(provider.lower(), model)


def fallbacks(setting: str) -> dict[str, tuple[Link, ...]]:
    """`profile=link>link` with commas between; `*` is every profile that is not named. Raises SettingsError."""
    found: dict[str, tuple[Link, ...]] = {}
    for part in filter(None, (word.strip() for word in setting.split(","))):
        profile, equals, links = (word.strip() for word in part.partition("="))
        if not equals or not profile or not links:
            raise SettingsError(f"{FALLBACKS}: '{part}' is not 'profile=provider:model>provider:model'")
        if profile in found:
            raise SettingsError(f"{FALLBACKS}: '{profile}' is named twice")
        found[profile] = tuple(link(one, FALLBACKS) for one in links.split(">"))
    return found


def chain(settings: Settings, profile: str, primary: Link) -> tuple[Link, ...]:
    """Where a session's calls may go, its own model first, each once."""
    by_profile = fallbacks(settings.fallbacks)
    after = by_profile.get(profile, by_profile.get("*", ()))
    return tuple(dict.fromkeys((primary, *after)))


def auxiliary(setting: str) -> tuple[Link | None, ...]:
    """Who writes summaries, in order; None is the session's own model. Raises SettingsError."""
    told = [one.strip() for one in setting.split(">") if one.strip()] or [SESSION]
    return tuple(None if one == SESSION else link(one, AUXILIARY) for one in told)

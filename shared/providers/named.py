"""Owns which models' names a provider is known to answer to. Pure.

A name is refused only where the list of it can be whole: at a provider whose prices are listed and whose models are its
own, at its own address or in a rehearsal. Whatever stands behind another address may call its models as it likes.
"""

from __future__ import annotations

import difflib
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from genai_prices import data_snapshot

from shared import models, rates
from shared.errors import Refused, SettingsError
from shared.providers import chains, resolve
from shared.providers.declaration import Declaration
from shared.providers.table import AZURE, OPENROUTER, known

if TYPE_CHECKING:
    from shared.settings import Settings

_NAMED_BY_OTHERS = frozenset({AZURE.name, OPENROUTER.name})
"""Deployments that a team names itself; everybody's models under names that change by the week."""
_REHEARSED = "rehearsal-"
"""What the stand-in has beside the models that it stands in for."""
_MOST, _LIKE = 3, 0.5


def check(settings: Settings, provider: str, model: str) -> None:
    """Raises Refused `model_unknown` (422) with the nearest names where the provider is known to have no such model."""
    if _may_be_any(settings, provider) or _is_known(settings, provider, model):
        return
    near = nearest(settings, provider, model)
    like = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Refused(
        f"{provider} is not known to have a model '{model}'.{like} One that is newer than the lists here is named with "
        f'its price in a table [prices.{provider}."{model}"] of nightshift.toml.',
        code="model_unknown", status=422,
    )  # fmt: skip


def nearest(settings: Settings, provider: str, model: str) -> list[str]:
    """At most three names of that provider, the likest first."""
    every = dict.fromkeys((*_told(settings, provider), *_listed(provider.partition("/")[0])))
    by_lower = {one.lower(): one for one in every}
    close = difflib.get_close_matches(model.lower(), by_lower, n=_MOST, cutoff=_LIKE)
    return [by_lower[one] for one in close] or list(_told(settings, provider))[:_MOST]


def _may_be_any(settings: Settings, provider: str) -> bool:
    try:
        found = resolve.of_provider(settings, provider)
    except SettingsError:
        return True  # that is said by whoever asks for the provider
    kind = provider.partition("/")[0]
    closed = found.prices is not None and kind not in _NAMED_BY_OTHERS
    return not closed or not (settings.rehearsal or _is_its_own(found))


def _is_its_own(found: Declaration) -> bool:
    host = (urlsplit(found.base_url).hostname or "").lower()
    return any(host == one or (one.startswith(".") and host.endswith(one)) for one in found.hosts)


def _is_known(settings: Settings, provider: str, model: str) -> bool:
    if model in _told(settings, provider) or (settings.rehearsal and model.startswith(_REHEARSED)):
        return True
    return rates.of_model(model, datetime.now(UTC), provider, settings.prices) is not None


def _told(settings: Settings, provider: str) -> tuple[str, ...]:
    """The names that this deployment's own settings use there."""
    here = [settings.model] if provider == resolve.name(settings) else []
    links = (one for chain in chains.fallbacks(settings.fallbacks).values() for one in chain)
    of_work = (one for one in chains.auxiliary(settings.auxiliary) if one is not None)
    return (*here, *(one.model for one in (*links, *of_work) if one.provider == provider))


@lru_cache(maxsize=32)
def _listed(kind: str) -> tuple[str, ...]:
    """Names of the list of prices, or those of them whose windows are known here, where some are: the rest of such a
    list is old, or holds no conversation."""
    found = known(kind)
    of_prices = next((one for one in data_snapshot.get_snapshot().providers if found and one.id == found.prices), None)
    listed = [one.id for one in of_prices.models] if of_prices is not None else []
    return tuple(one for one in listed if one in models.TABLE) or tuple(listed)

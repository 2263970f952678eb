"""Where a worker sends its calls, by its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import SettingsError
from shared.providers import resolve
from shared.settings import Settings, load
from workers.manners.fleet import Fleet
from workers.providers.client import Client
from workers.providers.routes import Routes


def _own(settings: Settings) -> Client:
    routes = Routes(settings, Fleet(None, lambda: 1), {})
    routes.check()
    (key,) = routes.pool(resolve.name(settings))
    return routes.client(key)


def test_a_key_without_an_address_goes_to_the_provider_itself(tmp_path: Path) -> None:
    provider = _own(load({"ANTHROPIC_API_KEY": "sk-test", "NIGHTSHIFT_HOME": str(tmp_path)})).provider
    assert (provider.base_url, provider.api_key) == ("https://api.anthropic.com", "sk-test")


def test_an_address_that_was_set_is_used_and_needs_no_key(tmp_path: Path) -> None:
    provider = _own(Settings(provider_base_url="http://127.0.0.1:9", home=tmp_path)).provider
    assert (provider.base_url, provider.api_key) == ("http://127.0.0.1:9", "none")


def test_without_a_key_a_worker_of_a_public_provider_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_KEY"):
        _own(Settings(home=tmp_path))

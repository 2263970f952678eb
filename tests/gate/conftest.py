"""One API a module, on a database of its own, and a worker's parts beside it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from deploy.local.servers import Servers
from tests.api.conftest import fresh_database
from tests.api.serving import Api, serving, settings_for


@pytest.fixture(scope="module")
def api(servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    home = tmp_path_factory.mktemp("home")
    with fresh_database(servers, template) as url, serving(settings_for(url, servers.valkey.url, home)) as running:
        yield running

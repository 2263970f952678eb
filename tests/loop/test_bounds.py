"""What one worker keeps for all turns has a size, however many prompts, keys, people and events there are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from shared import redact
from shared.mcp import McpServer
from shared.providers import resolve
from shared.providers.credentials import Credential
from shared.redact import Redactor
from shared.secrets import Authority
from shared.settings import Settings
from shared.store.pool import Database
from shared.values import EventKind
from workers import publish, snapshot
from workers.manners.fleet import Fleet
from workers.mcp.servers import Servers
from workers.providers import routes as routes_module
from workers.providers.routes import Routes
from workers.publish import Publisher


def sizes(owner: object) -> list[int]:
    """Of each mapping that it has."""
    return [len(cast("dict[object, object]", one)) for one in vars(owner).values() if isinstance(one, dict)]


class Prompts:
    """A database that has whatever prompt it is asked for."""

    def read(self, work: Callable[[Any], Any]) -> Any:
        del work
        return SimpleNamespace(tools_text="[]")


def test_the_tools_of_prompts_are_remembered_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_MOST_KNOWN", 10)
    monkeypatch.setattr(snapshot, "_known", known := dict[str, tuple[str, ...]]())
    for number in range(35):
        assert snapshot.of_prefix(cast("Database", Prompts()), f"digest {number}") == ()
    assert len(known) == 5


def test_of_keys_that_were_exchanged_the_clients_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_module, "MOST_CLIENTS", 3)
    settings = Settings(provider_base_url="http://127.0.0.1:9", home=tmp_path)
    routes = Routes(settings, Fleet(None, lambda: 1), {})
    routes.check()
    (own,) = routes.pool(resolve.name(settings))
    made = [routes.client(Credential(own.provider, own.name, f"key-{number}")) for number in range(8)]
    assert max(sizes(routes)) == 3
    assert [one.http.is_closed for one in made] == [*[True] * 5, *[False] * 3]
    routes.close()


def test_of_many_peoples_tool_servers_the_last_used_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.mcp.servers._MOST_KEPT", 3)
    monkeypatch.setattr(redact, "REDACTOR", Redactor())  # it forgets no key, and other tests need none of these
    config = McpServer(command=("true",), env={"KEY": "secret:KEY"})
    servers = Servers(Settings(home=tmp_path, mcp={"one": config}))
    for number in range(8):
        person = uuid4()
        path = tmp_path / "secrets" / "person" / str(person) / "KEY"
        path.parent.mkdir(parents=True)
        path.write_text(f"the key of person {number}")
        path.chmod(0o600)
        servers._server("one", Authority(person=person))  # what a call asks for first
    assert max(sizes(servers)) == 3
    servers.close()


class Away:
    """A connection whose first batch never gets through."""

    def __init__(self) -> None:
        self.on_its_way, self.go = threading.Event(), threading.Event()

    def register_script(self, text: str) -> Any:
        del text
        return dict

    def pipeline(self, **how: Any) -> Any:
        del how
        self.on_its_way.set()
        assert self.go.wait(20)
        return SimpleNamespace(execute=lambda: None)


def test_events_that_cannot_be_sent_wait_in_a_bounded_line_for_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "MOST_WAITING", 10)
    away = Away()
    publisher = Publisher(cast("Any", away), lambda: True)
    turn = uuid4()
    publisher.put(turn, 1, 1, EventKind.STEP_STARTED, {})
    assert away.on_its_way.wait(20)
    for _ in range(35):
        publisher.put(turn, 1, 1, EventKind.TOOL_CALLED, {})
    assert publisher.dropped == 25
    away.go.set()
    publisher.close()

"""Tool servers that run, and a worker's parts to call them from."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from deploy.local import servers as local
from shared.boottime import boottime
from shared.mcp import McpServer
from shared.settings import Settings
from shared.values import Repeat
from tests.ground import Ground, Rehearsal, ground
from workers.mcp.servers import Servers
from workers.tools import dispatch
from workers.tools.context import Store, ToolContext, ToolResult

HOSTILE = Path(__file__).with_name("hostile.py")
TIME = McpServer(command=(sys.executable, "-m", "mcp_server_time"), allowed=("convert_time",), allowed_in=("default",))
ODD = McpServer(command=("x",), allowed=("fine",))
"""What the gate reads of that server's table; the fixture below starts it."""
Start = Callable[..., "Running"]


@dataclass
class Running:
    """Servers that were started; `folder` is where the hostile one leaves traces."""

    servers: Servers
    settings: Settings
    folder: Path
    worker: Ground
    tool: str = "mcp_bad_act"

    def context(
        self,
        *,
        repeat: Repeat = Repeat.REPEATABLE,
        cancelled: Callable[[], bool] = lambda: False,
        turn: UUID | None = None,
    ) -> ToolContext:
        of = turn or uuid4()
        store = Store(self.worker.database, self.settings, uuid4(), of, 1)
        until = boottime() + 60
        return ToolContext("session", str(of), 1, 0, self.folder, None, cancelled, until, repeat=repeat, store=store)

    def call(self, tool: str = "", *, repeat: Repeat = Repeat.REPEATABLE, **more: Any) -> ToolResult:
        """`do` is what the hostile one shall do; other arguments of the tool as `arguments`."""
        arguments = more.pop("arguments", {"do": more.pop("do")} if "do" in more else {})
        return dispatch.run_one(self.context(repeat=repeat, **more), tool or self.tool, json.dumps(arguments))

    def count(self, what: str) -> int:
        path = self.folder / what
        return path.stat().st_size if path.exists() else 0


def hostile(kind: str, folder: Path, **more: Any) -> McpServer:
    return McpServer(command=(sys.executable, "-I", str(HOSTILE), kind, str(folder)), **more)


@pytest.fixture(scope="module")
def worker(
    module_database_url: str, servers: local.Servers, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    home = tmp_path_factory.mktemp("home")
    with ground(module_database_url, servers.valkey.url, provider.url, home, mcp={"time": TIME, "odd": ODD}) as made:
        yield made


@pytest.fixture(scope="module")
def running(worker: Ground, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """One hostile server, one with odd schemas, and one that nobody here wrote; for all tests that leave them be."""
    folder = tmp_path_factory.mktemp("bad")
    schemas = folder / "schemas"
    schemas.mkdir()
    mcp = {
        "bad": hostile("fine", folder, call_s=2.0, env={"PLAIN": "value"}),
        "odd": hostile("schemas", schemas, repeatable=("fine",)),
        "array": hostile("array", schemas),
        "time": TIME,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ANTHROPIC_API_KEY", "NIGHTSHIFT_PROVIDER_KEY", "NIGHTSHIFT_SECRET_OTHER", "DATABASE_URL"):
            patch.setenv(name, "a-key-of-the-worker")
        settings = worker.settings.model_copy(update={"home": folder, "mcp": mcp, "mcp_wait_s": 60.0})
        made = Servers(settings)
        made.start()
    yield Running(made, settings, folder, worker)
    made.close()


@pytest.fixture
def start(worker: Ground, tmp_path: Path) -> Generator[Start]:
    """`start(kind)` has a hostile server of that kind of its own, called `own`; more settings of it by name."""
    with ExitStack() as stack:

        def begin(kind: str, **more: Any) -> Running:
            mcp = {"own": hostile(kind, tmp_path, **more)}
            settings = worker.settings.model_copy(update={"home": tmp_path, "mcp": mcp, "mcp_wait_s": 60.0})
            made = Servers(settings)
            stack.callback(made.close)
            made.start()
            return Running(made, settings, tmp_path, worker, "mcp_own_act")

        yield begin

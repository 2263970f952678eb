"""All tool servers of this worker: which there are, which of their tools are offered, and on whose keys each runs.

A server whose values name secrets is a server of its own for each set of them, so that one person's key is never used
for another. What a session may call stands in its prompt; a server that comes late is there at its next epoch.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping
from functools import partial

import structlog

from shared import mcp, redact
from shared.mcp import McpServer
from shared.secrets import TEAM, Authority, SecretMissing, Secrets, SecretUnusable
from shared.settings import Settings
from shared.store import authority as authorities
from shared.values import Repeat
from workers.mcp import calling, offered
from workers.mcp.offered import Offer
from workers.mcp.server import Server, Unreachable
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool
from workers.tools.touching import NOTHING, always

AGAIN_S = 5.0
NOT_TRIED = "it is not connected yet"
_MOST_KEPT = 16
_log = structlog.stdlib.get_logger(__name__)


class Servers:
    """Those of the settings. `start` before the first turn; `close` ends what was started."""

    def __init__(self, settings: Settings) -> None:
        self._configs = settings.mcp
        self._wait_s = settings.mcp_wait_s
        self._secrets = Secrets(settings.secrets_folder, os.environ)
        self._lock = threading.Lock()
        self._kept: dict[str, Server] = {}
        self._lacking: dict[str, str | None] = {}
        self._left_out: dict[str, Mapping[str, str]] = {}
        self._stale: set[str] = set()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Connect to each, and wait a while until each was; whoever is late is tried again and again until `close`."""
        for name in self._configs:
            self._lacking[name] = NOT_TRIED
            thread = threading.Thread(target=self._look_after, args=(name,), name=f"mcp-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        until = time.monotonic() + self._wait_s
        while NOT_TRIED in self._lacking.values() and time.monotonic() < until:
            if self._stop.wait(0.05):
                return

    def close(self) -> None:
        self._stop.set()
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        for server in kept:
            server.close()
        for thread in self._threads:
            thread.join(2)
        with self._lock:
            for name in self._configs:
                registry.carry(mcp.tool_name(name, ""), ())

    def state(self) -> dict[str, str | None]:
        """Why each server cannot be used, None where it can."""
        return dict(self._lacking)

    def left_out(self) -> dict[str, Mapping[str, str]]:
        """Why tools of a server are not offered, by its name and theirs."""
        return dict(self._left_out)

    def call(self, name: str, offer: Offer, context: ToolContext, arguments: Arguments) -> ToolResult:
        """One call, on the keys of the turn that it is of. Without a turn nobody is known to ask, and it is denied."""
        if context.store is None:
            raise ToolRefused("refused: nobody is known on whose behalf this tool server would be called")
        try:
            server = self._server(name, self._authority(name, context))
            connection = server.connected()
        except (Unreachable, SecretMissing, SecretUnusable) as error:
            later = "; it is tried again in a while" if isinstance(error, Unreachable) and error.later else ""
            words = f"the tool server {name} cannot be used now: {_why(error)}{later}. Nothing was done"
            raise ToolRefused(words) from error
        return calling.call(server, connection, self._configs[name], offer, context, arguments)

    def _look_after(self, name: str) -> None:
        """Have it connected, and its tools offered as they are now."""
        while not self._stop.is_set():
            try:
                server = self._server(name, TEAM)
                stale = name in self._stale
                fresh = self._lacking[name] is not None
                server.connected()
                if stale:
                    self._stale.discard(name)
                    server.relist()
                if fresh or stale:
                    self._offer(name, server)
                self._lacking[name] = None
            except (Unreachable, SecretMissing, SecretUnusable) as error:
                self._lacking[name] = _why(error)
            self._stop.wait(AGAIN_S if name not in self._stale else 0.2)

    def _offer(self, name: str, server: Server) -> None:
        found = offered.judge(name, self._configs[name], server.listed)
        self._left_out[name] = found.left_out
        for tool, why in found.left_out.items():
            _log.warning("mcp.tool_left_out", server=name, tool=tool, why=why)
        with self._lock:  # whoever is late must not offer tools of servers that are closed
            if not self._stop.is_set():
                registry.carry(mcp.tool_name(name, ""), [self._tool(name, offer) for offer in found.offers])

    def _tool(self, name: str, offer: Offer) -> Tool:
        config = self._configs[name]
        vouched = offer.tool in config.repeatable
        return Tool(
            name=offer.name,
            description=offer.description,
            schema=offer.schema,
            repeat=Repeat.REPEATABLE if vouched else Repeat.ONCE,
            run=partial(self.call, name, offer),
            cap_chars=calling.CAP,
            touches=always(NOTHING) if vouched else None,
            lacks=lambda _: self._lacking.get(name),
            run_s=config.call_s + config.connect_s + 5,
            ours=False,
        )

    def _authority(self, name: str, context: ToolContext) -> Authority:
        config = self._configs[name]
        if not any(value.startswith(mcp.SECRET) for value in (*config.env.values(), *config.headers.values())):
            return TEAM
        store = store_of(context)
        return store.database.read(lambda connection: authorities.of_turn(connection, store.turn))

    def _server(self, name: str, authority: Authority) -> Server:
        config = self._configs[name]
        values = self._filled(config, authority)
        key = f"{name}:{hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()}"
        with self._lock:
            if self._stop.is_set():
                raise Unreachable("this worker is ending")
            server = self._kept.pop(key, None) or Server(name, config, values, partial(self._stale.add, name))
            self._kept[key] = server  # the last used stands last
            over = len(self._kept) - max(_MOST_KEPT, 2 * len(self._configs))
            idle = [one for one, kept in self._kept.items() if not kept.busy and one != key][: max(0, over)]
            dropped = [self._kept.pop(one) for one in idle]
        for one in dropped:
            one.close()
        return server

    def _filled(self, config: McpServer, authority: Authority) -> dict[str, str]:
        """`env` or `headers` with each secret in its place. Raises as `Secrets.find`."""
        values: dict[str, str] = {}
        for name, value in (*config.env.items(), *config.headers.items()):
            if value.startswith(mcp.SECRET):
                value = self._secrets.find(value.removeprefix(mcp.SECRET), authority).value  # noqa: PLW2901
                redact.REDACTOR.learn((value,))
            values[name] = value
        return values


def _why(error: Unreachable | SecretMissing | SecretUnusable) -> str:
    return error.why if isinstance(error, Unreachable) else error.message

"""One tool server: connected when it is needed, again after it died, and left alone for a while where that fails."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from shared.mcp import McpServer
from workers.mcp import frames
from workers.mcp.breaker import Breaker
from workers.mcp.connection import Connection, Gone, Late, Refused

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME")
"""What a program gets of this host's environment: where things are, and nothing that anybody keeps a key in."""
_WORDS = {
    "time": "it did not answer in time",
    "unreachable": "it cannot be reached",
    "refused": "it refused",
    "broken": "it does not keep to the protocol",
}
_log = structlog.stdlib.get_logger(__name__)


class Unreachable(Exception):
    """No call went out; `why` is a few words. `later`: nobody tried just now, it is left alone for a while."""

    def __init__(self, why: str, *, later: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.later = later


class Server:
    """Owns the connection to one server with one set of values (`env` and `headers`, secrets filled in)."""

    def __init__(
        self,
        name: str,
        config: McpServer,
        values: Mapping[str, str],
        changed: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._config = config
        self._values = dict(values)
        self._changed = changed
        self._now = now
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self.busy = 0
        self._breaker = Breaker()
        self._connection: Connection | None = None
        self._why = "it is not connected yet"
        self.listed: Sequence[Mapping[str, Any]] = ()

    def connected(self) -> Connection:
        """Of several who ask at once one connects and the others wait for it. Raises Unreachable."""
        with self._lock:
            if self._connection is not None and not self._connection.gone:
                return self._connection
            now = self._now()
            if not self._breaker.may_try(now):
                raise Unreachable(self._why, later=True)
            self._breaker = self._breaker.tried(now, self._config.connect_s)
            self._drop()
            try:
                self._connection = self._connect()
            except Unreachable as error:
                self._failed(error.why)
                raise
            self._breaker = self._breaker.worked()
            return self._connection

    def relist(self) -> None:
        """Ask anew what tools there are. Raises Unreachable."""
        connection = self.connected()
        try:
            self.listed = connection.ask(self._config.connect_s, lambda: False, do="list")["tools"]
        except (Gone, Late, Refused) as error:
            raise Unreachable("its list of tools could not be had") from error

    @contextmanager
    def used(self) -> Generator[None]:
        """A call is out: what is in use is not given up for another."""
        with self._counting:
            self.busy += 1
        try:
            yield
        finally:
            with self._counting:
                self.busy -= 1

    def answered(self) -> None:
        """It works."""
        if self._breaker.failures:
            with self._lock:
                self._breaker = self._breaker.worked()

    def suspect(self, connection: Connection, why: str, *, over: bool = False) -> None:
        """A call got no answer. Where it is `over` with the server, the bridge does not answer either, or this is how
        it goes again and again, the bridge is ended: a new one is had once the breaker lets somebody try."""
        dead = over or connection.gone or not connection.lives()
        with self._lock:
            if self._connection is connection:
                self._failed(why)
                if dead or not self._breaker.may_try(self._now()):
                    self._drop()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _connect(self) -> Connection:
        setup = {
            "command": list(self._config.command), "url": self._config.url, "folder": str(self._config.folder),
            "env": {**{name: os.environ[name] for name in KEPT if name in os.environ}, **self._values},
            "headers": self._values, "connect_s": self._config.connect_s, "call_s": self._config.call_s,
        }  # fmt: skip
        connection = None
        try:
            connection = Connection(setup, self._changed)
            first = connection.first(self._config.connect_s + 2)
            self.listed = first["tools"]
        except (Gone, Late, Refused, OSError, frames.Broken, KeyError) as error:
            if connection is not None:
                connection.close()
            raise Unreachable(_why(error)) from error
        _log.info("mcp.connected", server=self.name, tools=len(self.listed))
        return connection

    def _failed(self, why: str) -> None:
        self._why = why
        self._breaker = self._breaker.failed(self._now())
        _log.warning("mcp.failed", server=self.name, why=why, failures=self._breaker.failures)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _why(error: Exception) -> str:
    if isinstance(error, Late):
        return _WORDS["time"]
    if isinstance(error, Refused):
        return words(error)
    return "it ended while it was connected to" if isinstance(error, Gone) else "no process could be had for it"


def words(error: Refused) -> str:
    return _WORDS.get(error.why, "it failed")

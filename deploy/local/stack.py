"""Owns which processes make a stack, in which order, and what each may see: a provider's key reaches workers alone."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local import postgres, valkey
from deploy.local.binaries import find_postgres, find_valkey
from deploy.local.explain import StackError
from deploy.local.home import Home, secret
from deploy.local.program import Program, of_server
from deploy.local.spawn import clean_environment, unprivileged
from shared.secrets import VARIABLE
from shared.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]
KEEP_ADDRESS_STARTS = 4
# A stack of one's own may run as root: tools have a sandbox, and Celery's messages here hold no pickles.
_ROOT_IS_FINE = "ignore:You're running the worker with superuser privileges"
_PORT = re.compile(r"http://[^:/\s]+:(\d+)")
# Set anew for the children, or none of their business.
_NOT_HANDED_ON = frozenset(
    PREFIX + name
    for name in ("TOKEN", "URL", "PROVIDER_KEY", "VENV", "PYTHON", "HOME", "DATABASE_URL", "DATABASE_DIRECT_URL")
) | {
    PREFIX + name
    for name in ("REDIS_URL", "API_PORT", "SLOTS", "REHEARSAL", "REHEARSAL_TOKEN", "PROVIDER_BASE_URL", "TEST_CLOCK")
}


@dataclass(frozen=True, slots=True)
class Fleet:
    """How many of each; `concurrency` is slots a worker."""

    workers: int = 2
    concurrency: int = 8
    schedulers: int = 1
    beats: int = 1
    apis: int = 1


@dataclass(slots=True)
class Stack:
    """What is known of the stack so far: addresses come as the processes say them."""

    home: Home
    settings: Settings
    fleet: Fleet
    is_rehearsal: bool
    database_url: str = ""
    direct_url: str = ""
    redis_url: str = ""
    broker_url: str = ""
    provider_url: str = ""
    servers: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    urls: dict[str, str] = field(default_factory=dict[str, str])  # of APIs, by name
    programs: list[Program] = field(default_factory=list[Program])

    @property
    def url(self) -> str:
        return next(iter(self.urls.values()), "")

    @property
    def rehearsal_token(self) -> str:
        """What opens the rehearsal provider's control surface: the one given, else one made for the stack's own."""
        return self.settings.rehearsal_token or (secret(self.home, "rehearsal-token") if self.is_rehearsal else "")

    def facts(self, pids: Mapping[str, list[int]]) -> dict[str, object]:
        """What `stack.json` holds."""
        return {
            "url": self.url,
            "token": secret(self.home, "admin-token"),  # made by the first task
            "database_url": self.database_url,
            "redis_url": self.redis_url,
            "provider_url": self.provider_url,
            "pids": {"supervisor": [os.getpid()], **pids},
            "urls": list(self.urls.values()),
            "database_direct_url": self.direct_url,
            "broker_url": self.broker_url,
            "rehearsal": self.is_rehearsal,
            "rehearsal_token": self.rehearsal_token,
            "servers": self.servers,
            "home": str(self.home.root),
            "logs": str(self.home.logs),
            "content_trace": None if self.settings.content_trace is None else str(self.settings.content_trace),
        }


def plan(home: Home, settings: Settings, fleet: Fleet, *, pg_bin: Path | None = None) -> Stack:
    """The whole stack, ready to be supervised. Makes the data folders; starts nothing."""
    wants_stand_in = settings.rehearsal or not (settings.provider_base_url or settings.provider_key)
    stack = Stack(home, settings, fleet, wants_stand_in)
    if settings.test_clock and (settings.database_url or settings.redis_url):
        raise StackError(
            "NIGHTSHIFT_TEST_CLOCK moves the time of a whole database, so it works with the embedded servers only:"
            " unset it, or unset NIGHTSHIFT_DATABASE_URL and NIGHTSHIFT_REDIS_URL."
        )
    _add_postgres(stack, pg_bin)
    _add_valkey(stack)
    stack.provider_url = settings.provider_base_url
    stack.programs.append(_migrate(stack))
    if stack.is_rehearsal:
        stack.programs.append(_rehearsal(stack))
    stack.programs += [_api(stack, name) for name in _names("api", fleet.apis)]
    stack.programs += [_process(stack, "worker", name) for name in _names("worker", fleet.workers)]
    stack.programs += [_process(stack, "scheduler", name) for name in _names("scheduler", fleet.schedulers)]
    stack.programs += [_process(stack, "beat", name) for name in _names("beat", fleet.beats)]
    return stack


def _names(role: str, count: int) -> list[str]:
    return [role] if count == 1 else [f"{role}-{number}" for number in range(1, count + 1)]


def _add_postgres(stack: Stack, pg_bin: Path | None) -> None:
    given = stack.settings
    if given.database_url:
        stack.database_url, stack.direct_url = given.database_url, given.direct_url
        stack.servers["postgres"] = {"kind": "url"}
        return
    server = postgres.prepare(stack.home, find_postgres(pg_bin), identity=unprivileged())
    stack.database_url = stack.direct_url = postgres.url(stack.home, server)
    stack.servers["postgres"] = {"kind": server.kind, "version": server.version}
    stack.programs.append(of_server(server, wave=0))


def _add_valkey(stack: Stack) -> None:
    if stack.settings.redis_url:
        stack.redis_url = stack.broker_url = stack.settings.redis_url
        stack.servers["valkey"] = {"kind": "url"}
        return
    server = valkey.prepare(stack.home, find_valkey())
    stack.redis_url, stack.broker_url = valkey.url(stack.home), valkey.broker_url(stack.home)
    stack.servers["valkey"] = {"kind": server.kind, "version": server.version}
    stack.programs.append(of_server(server, wave=0, mend=lambda lines: valkey.mend(stack.home, lines)))


def _environment(stack: Stack, role: str, **more: str) -> dict[str, str]:
    """Asked at each start of a child, when the addresses of those before it are known."""
    handed = {n: v for n, v in os.environ.items() if n.startswith(PREFIX) and n not in _NOT_HANDED_ON}
    if role != "worker":  # keys are for those who use them
        handed = {n: v for n, v in handed.items() if not n.startswith(VARIABLE)}
    ours = {
        "HOME": str(stack.home.root),
        "DATABASE_URL": stack.database_url,
        "DATABASE_DIRECT_URL": stack.direct_url,
        "REDIS_URL": stack.redis_url,
        "PROVIDER_BASE_URL": stack.provider_url,
        "REHEARSAL": "1" if stack.is_rehearsal else "0",
        "TEST_CLOCK": "1" if stack.settings.test_clock else "0",
        "SLOTS": str(stack.fleet.concurrency),
    } | ({"PROVIDER_KEY": _key(stack)} if role == "worker" else {})
    if role in {"rehearsal", "scheduler"}:  # the one that is told the time, and the one that tells it
        ours["REHEARSAL_TOKEN"] = stack.rehearsal_token
    return {
        **clean_environment(),
        "PYTHONWARNINGS": _ROOT_IS_FINE,
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        **handed,
        **{PREFIX + name: value for name, value in (ours | more).items()},
    }


def _key(stack: Stack) -> str:
    return "rehearsal" if stack.is_rehearsal else stack.settings.provider_key


def _command(role: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "deploy.main", role, *arguments)


def _migrate(stack: Stack) -> Program:
    return Program(
        name="migrate",
        role="migrate",
        wave=1,
        command=lambda: _command("prepare"),
        folder=stack.home.root,
        environment=lambda: _environment(stack, "migrate"),
        patience=600.0,
    )


def _rehearsal(stack: Stack) -> Program:
    """In an empty folder of its own: it must find nothing but what a request shows it."""
    folder = stack.home.root / "rehearsal"
    folder.mkdir(mode=0o700, exist_ok=True)

    def settle(line: str) -> None:
        stack.provider_url = _address(line)

    return Program(
        name="rehearsal",
        role="rehearsal",
        wave=1,
        command=lambda: _command("rehearsal", "--port", _port(stack.provider_url)),
        folder=folder,
        environment=lambda: _environment(stack, "rehearsal"),
        ready_line=re.compile(r"^nightshift rehearsal ready http"),
        settle=settle,
    )


def _api(stack: Stack, name: str) -> Program:
    first = str(stack.settings.api_port) if name in {"api", "api-1"} else "0"
    starts = 0

    def settle(line: str) -> None:
        nonlocal starts
        starts = 0
        stack.urls[name] = _address(line)

    def environment() -> dict[str, str]:
        """After a restart the address stays, for all who read it, unless someone else has taken it meanwhile."""
        nonlocal starts
        starts += 1
        known = _port(stack.urls[name]) if name in stack.urls else first
        return _environment(stack, "api", API_PORT=known if starts <= KEEP_ADDRESS_STARTS else first)

    return Program(
        name=name,
        role="api",
        wave=2,
        command=lambda: _command("api"),
        folder=stack.home.root,
        environment=environment,
        ready_line=re.compile(r"^nightshift api ready http"),
        settle=settle,
    )


def _process(stack: Stack, role: str, name: str) -> Program:
    return Program(
        name=name,
        role=role,
        wave=3 if role == "beat" else 2,
        command=lambda: _command(role),
        folder=stack.home.root,
        environment=lambda: _environment(stack, role),
        ready_line=re.compile(rf"^nightshift {role} ready"),
    )


def _address(line: str) -> str:
    found = _PORT.search(line)
    if found is None:
        raise StackError(f"A process told no address in its ready line: {line!r}")
    return found.group(0)


def _port(url: str) -> str:
    found = _PORT.search(url)
    return found.group(1) if found else "0"

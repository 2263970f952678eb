"""One run behind the wall, as values: what is mounted, what it may use. Its descriptors are open where it is begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

INSIDE = "/workspace"
"""Where a run finds its workspace, whatever that is called on this host."""
HOME = "/home/agent"
PYTHON = "/opt/python"
OWNER = 60_600
"""Whom processes of a run belong to on the host where its worker is root; unassigned in every list of reserved ids."""
PROXY_PORT = 3128
INNER = 1000
"""What they call themselves inside."""

_PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PATH": _PATH,
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108 - of the sandbox, and its own
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_TEMPLATE_DIR": "/nonexistent",  # its sample hooks would be files that steer
        "GIT_AUTHOR_NAME": "agent",
        "GIT_AUTHOR_EMAIL": "agent@localhost",
        "GIT_COMMITTER_NAME": "agent",
        "GIT_COMMITTER_EMAIL": "agent@localhost",
    }
)
"""The whole environment of a run. Nothing of the worker's is in it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Per process: `cpu_seconds`, `data_bytes`, `file_bytes`, `files`. Of all together: `processes`, `memory_bytes`.
    `scratch_bytes` is the size of each of the folders that are memory; `disk_bytes` what the workspace may hold, with
    what was there before: a run that comes to hold more is ended."""

    cpu_seconds: int = 900
    data_bytes: int = 4 << 30
    file_bytes: int = 1 << 30
    files: int = 1024
    processes: int = 256
    memory_bytes: int = 2 << 30
    scratch_bytes: int = 256 << 20
    disk_bytes: int = 1 << 44


@dataclass(frozen=True, slots=True)
class Kept:
    """A path below the workspace that the run may read and not write; `fd` is that very file or folder."""

    path: str
    fd: int


@dataclass(frozen=True, slots=True)
class Box:
    """`command` sees `workspace` at INSIDE, the folder `attached` read-only below it at `input`, the interpreter's
    folder `python` at PYTHON, and the descriptors `passed` under their own numbers. The folders `covered` below the
    workspace are empty for it, and so are the files `blank`. Its network is its own and leads nowhere; with `network`
    it is told of a proxy at PROXY_PORT, which whoever begins it opens there."""

    command: tuple[str, ...]
    workspace: int
    attached: int | None = None
    python: int | None = None
    kept: tuple[Kept, ...] = ()
    covered: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    passed: tuple[int, ...] = ()
    network: bool = False
    bounds: Bounds = Bounds()

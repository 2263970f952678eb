"""Which tools a session has: those of its prompt as it was sent, until an epoch begins with another one.

A worker that carries more tools than the prompt was made with, or a tool server that comes late, changes nothing for
a session that stands. Its tools are chosen anew in one place, `chosen`: for its first prompt, and for the one that a
compaction makes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import structlog

from shared.request import canonical
from shared.settings import Settings
from shared.store import transcript
from shared.store.pool import Database
from shared.values import SessionKind
from workers.tools import registry
from workers.tools.availability import Availability
from workers.waiting import toolset

_MOST_KNOWN = 256
_known: dict[str, tuple[str, ...]] = {}
"""By digest, which names the content of a prompt: what one database says of it holds for all."""
_availability = Availability()
_log = structlog.stdlib.get_logger(__name__)


def of_prefix(database: Database, digest: str) -> tuple[str, ...]:
    """The tools that the prompt `digest` offers and this worker carries, by the names that they have now, sorted."""
    names = _known.get(digest)
    if names is None:
        names = named(database.read(lambda c: transcript.load_prefix(c, digest)).tools_text)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[digest] = names
    return tuple(name for name in names if name in registry.TOOLS)


def named(tools_text: str) -> tuple[str, ...]:
    """The tools that a prompt offers, by the names that they have now, sorted."""
    offered = cast("list[dict[str, Any]]", canonical.load_strict(tools_text or "[]"))
    # One string a name, however many prompts are remembered with it.
    return tuple(sorted({sys.intern(registry.current(str(tool["name"]))) for tool in offered}))


def chosen(settings: Settings, kind: SessionKind, listed: Sequence[str] | None) -> tuple[str, ...]:
    """The tools of a session whose prompt is made now. A child has its parent's, which were asked for: a probe that
    fails under the load of many children must not take one away from some of them."""
    wanted = toolset.of_session(kind, listed, settings.spawn_depth)
    if kind is SessionKind.CHILD:
        return wanted
    lacking = {name: why for name in wanted if (why := _availability.lacks(registry.TOOLS[name], settings))}
    for name, why in lacking.items():
        _log.info("tool.not_offered", tool=name, why=why)
    return tuple(name for name in wanted if name not in lacking)


def lacking(settings: Settings) -> dict[str, str]:
    """Why each tool that cannot be offered here is not, by name: for whoever asks what this worker can do."""
    found = ((name, _availability.lacks(tool, settings)) for name, tool in list(registry.TOOLS.items()))
    return {name: why for name, why in found if why is not None}

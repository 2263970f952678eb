"""What a tool lacks here, asked when a session gets its tools: an answer holds for half a minute.

A failure so soon after a success is more likely a hiccup of the probe than a change of the host: it is thrown away and
the probe asked again, and a second one is told but not kept. So a busy moment takes no tool from the sessions after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from shared.settings import Settings
from workers.tools.tool import Tool

KEPT_S = 30.0
HICCUP_S = 60.0
_MOST_WHY = 300
MOST_TOOLS = 2_000
"""Of which anything is remembered: a tool server may call its tools otherwise each time it is asked."""
_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    """An answer is of this tool and these settings, and of no others by the same name."""

    at: float
    why: str | None
    tool: Tool
    settings: Settings


class Availability:
    """The answers of one process, by tool. Of several that ask at once for the same tool one probes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._probing: dict[str, threading.Lock] = {}
        self._kept: dict[str, _Asked] = {}
        self._worked: dict[str, float] = {}

    def lacks(self, tool: Tool, settings: Settings) -> str | None:
        """Why `tool` cannot be offered, in a few words; None where it can. Never raises."""
        if tool.lacks is None:
            return None
        with self._lock:
            if tool.name not in self._probing and len(self._probing) >= MOST_TOOLS:
                for known in (self._probing, self._kept, self._worked):
                    known.clear()
            probing = self._probing.setdefault(tool.name, threading.Lock())
        with probing:
            kept = self._kept.get(tool.name)
            if kept is not None and kept.tool is tool and kept.settings is settings and self._now() - kept.at < KEPT_S:
                return kept.why
            return self._probe(tool, settings)

    def _probe(self, tool: Tool, settings: Settings) -> str | None:
        why = _ask(tool, settings)
        if why is not None and self._now() - self._worked.get(tool.name, -HICCUP_S) < HICCUP_S:
            why = _ask(tool, settings)
            if why is not None:
                self._kept.pop(tool.name, None)
                return why
        if why is None:
            self._worked[tool.name] = self._now()
        self._kept[tool.name] = _Asked(self._now(), why, tool, settings)
        return why


def _ask(tool: Tool, settings: Settings) -> str | None:
    assert tool.lacks is not None
    try:
        why = tool.lacks(settings)
    except Exception as error:  # noqa: BLE001 - whatever a probe raises, its tool cannot be vouched for; its text may hold paths
        _log.error("tool.probe_failed", tool=tool.name, error=type(error).__name__)
        return f"its check failed ({type(error).__name__})"
    return None if why is None else why[:_MOST_WHY]

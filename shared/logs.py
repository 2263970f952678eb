"""Logs are events with ids, one JSON line each on stderr. No prompt, tool output or secret in any of them."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, cast

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import Processor

_PROCESSORS: list[Processor] = []
"""One list for as long as the process lives: a logger that has spoken keeps the one that it was made with."""


def configure(level: str = "info") -> None:
    """Set up structlog and the standard library's logging alike."""
    number = getattr(logging, level.upper())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(alike())
    logging.basicConfig(handlers=[handler], level=max(number, logging.WARNING))
    _PROCESSORS[:] = [structlog.contextvars.merge_contextvars, *_said(), structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=_PROCESSORS,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # A line and its end in one write: in two, another thread's line comes between them, and neither can be parsed.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def alike() -> logging.Formatter:
    """The standard library's lines as ours, with the `logger` that said it, so that what reads the log needs one
    parser."""
    return ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *_said()],
        processors=[ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
    )


def _said() -> list[Processor]:
    """What each line says beside its event."""
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    return [structlog.processors.add_log_level, stamp, told]


def told(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """`exc_info` of an event as its `exception`."""
    found: Any = event.pop("exc_info", None)
    error: Any = sys.exc_info()[1] if found is True else found
    if isinstance(error, tuple):
        error = cast("tuple[Any, ...]", error)[1]
    if isinstance(error, BaseException):
        event["exception"] = trace(error)
    return event


def trace(error: BaseException) -> str:
    """Where an exception and its causes were raised, without their words: Postgres quotes the whole row that it
    refuses, parsers quote what they read, and a client may quote the address with its password."""
    parts: list[str] = []
    at: BaseException | None = error
    while at is not None and len(parts) < 8:
        code: Any = getattr(at, "sqlstate", None) or getattr(at, "code", None)
        known = f" {code}" if isinstance(code, str) and len(code) < 60 else ""
        frames = "".join(traceback.format_tb(at.__traceback__, limit=-30))
        parts.append(f"{frames}{type(at).__module__}.{type(at).__qualname__}{known}")
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\nbecause of\n".join(parts)

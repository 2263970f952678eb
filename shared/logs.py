"""Logs are events with ids, one JSON line each on stderr. No prompt, tool output or secret in any of them."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str = "info") -> None:
    """Set up structlog and the standard library's logging alike."""
    number = getattr(logging, level.upper())
    logging.basicConfig(
        stream=sys.stderr, level=max(number, logging.WARNING), format="%(levelname)s %(name)s %(message)s"
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )

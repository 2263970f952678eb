"""How long the summariser is left alone after it failed: 30 seconds to 15 minutes, by what the failure was. Pure."""

from __future__ import annotations

from workers.providers.failures import Recovery

LEAST_S = 30.0
REPLY_S = 120.0
"""After an answer that is no summary: the same prompt is likely to get the same again."""
BUSY_S = 60.0
"""After a rate limit or an overload."""
MOST_S = 900.0
"""Also at once where a person must change something first: a key, money, the model's name."""


def after_reply(failures: int) -> float:
    """Seconds, after a reply that was refused, with so many failures in a row before it."""
    return _grown(REPLY_S, failures)


def after_error(recovery: Recovery, failures: int) -> float:
    """Seconds, after a call that failed."""
    if recovery.compress:
        return REPLY_S  # what stands in for the summary makes the next prompt smaller
    if recovery.fatal:
        return MOST_S
    if recovery.cools:
        return min(max(_grown(BUSY_S, failures), recovery.wait_s or 0.0), MOST_S)
    return _grown(LEAST_S, failures)


def _grown(first: float, failures: int) -> float:
    return min(first * 2.0 ** min(max(failures, 0), 10), MOST_S)

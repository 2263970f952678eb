"""What is said of a tool run of which nobody knows whether it happened: the same words wherever it is found out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_SECOND = timedelta(seconds=1)


def unknown(until: datetime | None, *, why: str | None = None, look: str | None = None) -> str:
    """What the model reads. `until`: until when the run may act, should what ran it live; `look`: how to find out."""
    after = "at any time" if until is None else f"until {_clock(until)} UTC"
    told = f" ({why})" if why else ""
    how = f" ({look})" if look else ""
    return (
        f"outcome unknown: the worker was lost while this ran{told}. It may have happened, or may yet happen, {after};"
        f" check before repeating it{how}."
    )


def _clock(until: datetime) -> str:
    """Rounded up: a time that is over too early would be a lie."""
    moment = until.astimezone(UTC)
    whole = moment.replace(microsecond=0)
    return f"{whole + _SECOND if moment > whole else whole:%H:%M:%S}"

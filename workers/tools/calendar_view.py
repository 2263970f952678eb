"""A calendar as text: one event a line in its own zone's time, by start, with its recurrence rule as written.

Runs in a child process only: what it parses was written by strangers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, cast

import icalendar

_MOST_BYTES = 8 * 1024 * 1024
_MOST_TEXT = 300
_KINDS = frozenset({"VEVENT", "VTODO"})


def events(source: Iterator[bytes]) -> Iterator[bytes]:
    """The events and tasks of every calendar in the file; one that cannot be parsed is shown as it stands."""
    raw = bytearray()
    cut = False
    for chunk in source:
        raw += chunk[: max(0, _MOST_BYTES - len(raw))]
        if len(raw) >= _MOST_BYTES:
            cut = True
            break
    try:
        calendars = icalendar.Calendar.from_ical(bytes(raw), multiple=True)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        yield f"[this calendar cannot be parsed ({type(error).__name__}); its text follows]\n".encode()
        yield bytes(raw)
        return
    found: list[Any] = [part for calendar in calendars for part in _walk(calendar) if part.name in _KINDS]
    for _, line in sorted((_key(part), _line(part)) for part in found):
        yield (line + "\n").encode("utf-8", "replace")
    if not found:
        yield b"[no whole event in this calendar; its text follows]\n"
        yield bytes(raw)
    if cut:
        yield f"[only the first {_MOST_BYTES:,} bytes of the calendar were read]\n".encode()


def _walk(calendar: Any) -> list[Any]:
    """The parts of a calendar. The package types them only in part, so from here on they are what they show."""
    return calendar.walk()


def _key(part: Any) -> float:
    start = _moment(part, "DTSTART") or _moment(part, "DUE")
    if start is None:
        return float("inf")
    if not isinstance(start, datetime):
        start = datetime(start.year, start.month, start.day, tzinfo=UTC)
    try:
        return (start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError, OSError):
        return float("inf")


def _line(part: Any) -> str:
    pieces = [_when(part), _text(part, "SUMMARY") or "(no title)"]
    pieces += [f"at {place}"] if (place := _text(part, "LOCATION")) else []
    pieces += [f"repeats {rule}"] if (rule := _rule(part)) else []
    pieces += [f"by {organiser}"] if (organiser := _text(part, "ORGANIZER")) else []
    status = _text(part, "STATUS")
    pieces += [status.lower()] if status and status != "CONFIRMED" else []
    line = " | ".join(pieces)
    notes = _text(part, "DESCRIPTION")
    return f"{line}\n    {notes}" if notes else line


def _when(part: Any) -> str:
    start, end, due = _moment(part, "DTSTART"), _moment(part, "DTEND"), _moment(part, "DUE")
    if start is None:
        return f"due {_show(due, part, 'DUE')}" if due else "no date"
    text = _show(start, part, "DTSTART")
    if isinstance(start, datetime) and isinstance(end, datetime):
        same_day = start.date() == end.date() and start.tzinfo == end.tzinfo
        span = f"{end:%H:%M}" if same_day else _show(end, part, "DTEND")
        head, _, zone = text.rpartition(" ")
        return f"{head}-{span} {zone}" if same_day else f"{text} to {span}"
    return f"{text} all day" if not isinstance(start, datetime) else text


def _moment(part: Any, name: str) -> date | None:
    value = getattr(part.get(name), "dt", None)
    return value if isinstance(value, date) else None


def _show(moment: date, part: Any, name: str) -> str:
    if not isinstance(moment, datetime):
        return moment.isoformat()
    zone = part.get(name).params.get("TZID") if moment.tzinfo else "local"
    return f"{moment.isoformat(sep=' ', timespec='minutes')[:16]} {zone or moment.tzname() or 'UTC'}"


def _text(part: Any, name: str) -> str:
    value = _first(part.get(name))
    text = " ".join(str(value).split()) if value is not None else ""
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…"


def _first(value: Any) -> Any:
    """A property that is given twice is a list."""
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return several[0] if several else None
    return value


def _rule(part: Any) -> str:
    rule = _first(part.get("RRULE"))
    return rule.to_ical().decode("utf-8", "replace")[:_MOST_TEXT] if rule is not None else ""

"""Owns what a calendar says: its events by start, whether the tool decoded it or gave it raw."""

import re
from typing import Final

from deploy.rehearsal.policies.lines import cite, short
from deploy.rehearsal.policies.workspace import Read

PROPERTY: Final = re.compile(r"^(DTSTART|DTEND|DUE|SUMMARY|LOCATION|RRULE)[^:]*:(.*)$")
STAMP: Final = re.compile(r"^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d))?")
MOST: Final = 15


def section(reads: list[Read]) -> list[str]:
    """Markdown lines, one an event, in order of time."""
    found = sorted(event for read in reads for event in _events(read))
    lines = [f"- {text}" for _, text in found[:MOST]]
    return lines if len(found) <= MOST else [*lines, f"- and {len(found) - MOST} more events"]


def _events(read: Read) -> list[tuple[str, str]]:
    if any(line.startswith(("BEGIN:VEVENT", "BEGIN:VTODO")) for _, line in read.lines):
        return _raw(read)
    # Decoded: one event a line, notes indented below.
    return [
        (line, f"{short(line)} ({cite(read, number)})")
        for number, line in read.lines
        if line.strip() and not line.startswith((" ", "\t", "["))
    ]


def _raw(read: Read) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    fields: dict[str, str] = {}
    first = 0
    for number, line in read.lines:
        if line.startswith(("BEGIN:VEVENT", "BEGIN:VTODO")):
            fields, first = {}, number
        elif line.startswith(("END:VEVENT", "END:VTODO")):
            when = _when(fields.get("DTSTART") or fields.get("DUE") or "")
            place = f" | at {fields['LOCATION']}" if fields.get("LOCATION") else ""
            found.append((when, f"{when} | {short(fields.get('SUMMARY', '(no title)'))}{place} ({cite(read, first)})"))
        else:
            match = PROPERTY.match(line)
            if match is not None:
                fields.setdefault(match[1], match[2].strip())
    return found


def _when(stamp: str) -> str:
    match = STAMP.match(stamp)
    if match is None:
        return stamp or "no date"
    year, month, day, hour, minute = match.groups()
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}" if hour else "")

"""Which text a file is read as: as it stands, or its mail or calendar rendered. Decides; reads nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum


class View(StrEnum):
    PLAIN = "plain"
    MBOX = "mbox"
    MAIL = "mail"
    CALENDAR = "calendar"


_MBOX = re.compile(rb"From [^\n]{1,998}\n[A-Za-z][A-Za-z0-9-]{0,76}:")
_HEADERS = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]{0,76}:[^\n]{0,998}\n(?:[ \t][^\n]{0,998}\n){0,50}){2}")
_CALENDAR_NAMES = (".ics", ".ical", ".icalendar", ".ifb", ".vcs")
_MAILDIR = frozenset({"cur", "new", "tmp"})


def view_of(parts: Sequence[str], start: bytes) -> View:
    """The view for a file of this path whose first bytes are `start`."""
    name = parts[-1].casefold()
    start = start.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").lstrip(b"\n")
    if name.endswith(_CALENDAR_NAMES) and b"BEGIN:VCALENDAR" in start.upper():
        return View.CALENDAR
    if _MBOX.match(start):
        return View.MBOX
    in_maildir = len(parts) > 1 and parts[-2] in _MAILDIR
    if (in_maildir or name.endswith((".eml", ".mail"))) and _HEADERS.match(start):
        return View.MAIL
    return View.PLAIN

"""The text of a view, piece by piece. All but the plain one parse foreign input: this runs in a child process only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from workers.tools import calendar_view, mail_view, plain
from workers.tools.view import View


def chunks(fd: int, view: View, kind: plain.Text) -> Iterator[bytes]:
    """The text of the open file `fd` in UTF-8, as `view` shows it."""
    match view:
        case View.PLAIN:
            return plain.chunks(fd, kind)
        case View.MBOX:
            return mail_view.mbox(plain.chunks(fd, kind))
        case View.MAIL:
            return mail_view.single(plain.chunks(fd, kind))
        case View.CALENDAR:
            return calendar_view.events(plain.chunks(fd, kind))
        case _:
            assert_never(view)


def warm() -> None:
    """Uses each parser once, so that what they import when first used is there before the child is sealed."""
    mail = b"From a Mon Nov 30 00:00:00 2026\nFrom: =?utf-8?q?a?=\nContent-Type: text/html\n\n<p>x</p>\n"
    day = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Berlin:20261130T090000\nEND:VEVENT\nEND:VCALENDAR\n"
    for view in (mail_view.mbox(iter([mail])), calendar_view.events(iter([day]))):
        for _ in view:
            pass

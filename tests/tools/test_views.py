"""Mail and calendars, as a person reads them."""

from __future__ import annotations

import email.message
import mailbox
import time
from pathlib import Path

import pytest

from deploy.drill.rig import slack
from tests.tools.conftest import Bench

CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:later
SUMMARY:Stand-up
DTSTART;TZID=Europe/Berlin:20261201T090000
DTEND;TZID=Europe/Berlin:20261201T093000
RRULE:FREQ=WEEKLY;BYDAY=TU,TH
LOCATION:Room 1\\, second floor
DESCRIPTION:Bring the\\n numbers
END:VEVENT
BEGIN:VEVENT
UID:utc
SUMMARY:Call
DTSTART:20261130T230000Z
DTEND:20261201T010000Z
STATUS:CANCELLED
END:VEVENT
BEGIN:VEVENT
UID:day
SUMMARY:Holiday
DTSTART;VALUE=DATE:20261130
END:VEVENT
BEGIN:VTODO
UID:todo
SUMMARY:Hand in
DUE:20261202T120000
END:VTODO
BEGIN:VEVENT
UID:broken
SUMMARY:Undated
END:VEVENT
END:VCALENDAR
"""


MAIL = """\
--- message 1 ---
From: Jörg <a@example.org>
To: b@example.org
Date: Mon, 30 Nov 2026 07:00:00 +0100
Subject: Grüße

Hello,

From here it goes on.

--- message 2 ---
From: a@example.org
To: b@example.org
Date: Mon, 30 Nov 2026 07:00:00 +0100
Subject: Invoice
Attached: März.pdf (application/pdf, 1,200 bytes)

See attached.
"""


def _mail(subject: str, body: str, *, sender: str = "a@example.org") -> email.message.EmailMessage:
    message = email.message.EmailMessage()
    message["From"] = sender
    message["To"] = "b@example.org"
    message["Date"] = "Mon, 30 Nov 2026 07:00:00 +0100"
    message["Subject"] = subject
    message.set_content(body)
    return message


@pytest.fixture
def box(bench: Bench) -> Path:
    path = bench.attached / "mail.mbox"
    made = mailbox.mbox(path)
    made.add(_mail("Grüße", "Hello,\n\nFrom here it goes on.\n", sender="Jörg <a@example.org>"))
    second = _mail("Invoice", "See attached.")
    second.add_alternative("<p>See <b>attached</b>.</p>", subtype="html")
    second.add_attachment(b"%PDF" * 300, maintype="application", subtype="pdf", filename="März.pdf")
    made.add(second)
    made.close()
    return path


def test_an_mbox_is_read_message_by_message(bench: Bench, box: Path) -> None:
    del box
    assert bench.text("read_file", path="input/mail.mbox") == MAIL


def test_raw_shows_the_mail_as_it_stands(bench: Bench, box: Path) -> None:
    raw = bench.text("read_file", path="input/mail.mbox", raw=True, limit=2)
    assert raw.startswith("From MAILER-DAEMON")
    assert box.read_text().count("\n") > 20


def test_a_window_of_a_view_reads_on_like_any_text(bench: Bench, box: Path) -> None:
    del box
    assert bench.text("read_file", path="input/mail.mbox", offset=11, limit=2) == (
        "--- message 2 ---\nFrom: a@example.org\n[lines 11-12 of 19 shown; read on with offset=13]"
    )


def test_a_search_finds_in_the_text_that_a_read_shows_and_under_the_same_number(bench: Bench, box: Path) -> None:
    del box
    found = bench.text("search_files", pattern="Grüße|attached").splitlines()[:-1]
    assert found == ["input/mail.mbox:5: Subject: Grüße", "input/mail.mbox:18: See attached."]
    assert bench.text("read_file", path="input/mail.mbox", offset=18, limit=1).startswith("See attached.\n")


def test_a_maildir_file_and_an_eml_are_mail(bench: Bench) -> None:
    raw = _mail("Hi", "text").as_bytes()
    for path in ("Maildir/cur/1700.host:2,S", "one.eml"):
        (bench.attached / path).parent.mkdir(parents=True, exist_ok=True)
        (bench.attached / path).write_bytes(raw)
        assert bench.text("read_file", path=f"input/{path}").startswith("From: a@example.org\nTo: b@example.org\n")


def test_only_html_is_shown_without_its_tags(bench: Bench) -> None:
    message = _mail("Hi", "x")
    message.set_content("<style>p{}</style><p>Dear&nbsp;all,</p><div>see <a href=x>this</a></div>", subtype="html")
    (bench.attached / "a.eml").write_bytes(message.as_bytes())
    assert bench.text("read_file", path="input/a.eml").endswith("\n\nDear all,\nsee this\n")


@pytest.mark.parametrize(
    "raw",
    [
        b"From a\nFrom: =?x?q?=FF?=\nSubject: =?utf-8?b?!!!?=\n\nbody\n",
        b"From a\nFrom: \xff\xfe\nContent-Type: text/plain; charset=nothing\n\n\xff body\n",
        b"From a\nSubject: x\nContent-Type: multipart/mixed; boundary=\n\n--\nbody\n",
        b"From a\nSubject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nbody\n" * 2_000,
        b"From a\nSubject: " + b"x" * 900_000 + b"\n\nbody\n",
        b"From a\n" + b"A: b\n" * 50_000 + b"\nbody\n",
        b"From a\nSubject: x\nContent-Transfer-Encoding: base64\nContent-Type: text/plain\n\nbody!\n",
        b"From a\nSubject: x\nContent-Type: text/plain; " + b'a*0="b";' * 5_000 + b"\n\nbody\n",
        b"From a\nSubject: x\nContent-Type: text/html\n\n" + b"<" * 200_000,
        b"From a\nSubject: x\nContent-Type: text/html\n\n" + b"<a " * 60_000,
    ],
)
def test_hostile_mail_is_a_result_in_bounded_time(bench: Bench, raw: bytes) -> None:
    (bench.attached / "m.mbox").write_bytes(raw)
    began = time.monotonic()
    result = bench.run("read_file", path="input/m.mbox")
    assert time.monotonic() - began < 25 * slack()
    assert result.text.startswith("--- message 1 ---") or result.is_error
    assert len(result.text) <= 40_000


def _event(*lines: str) -> str:
    return "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", "SUMMARY:kept", *lines, "END:VEVENT", "END:VCALENDAR", ""])


def test_a_calendar_is_events_by_start_in_their_own_zone(bench: Bench) -> None:
    (bench.attached / "c.ics").write_text(CALENDAR.replace("\n", "\r\n"))
    assert bench.text("read_file", path="input/c.ics").splitlines() == [
        "2026-11-30 all day | Holiday",
        "2026-11-30 23:00 UTC to 2026-12-01 01:00 UTC | Call | cancelled",
        "2026-12-01 09:00-09:30 Europe/Berlin | Stand-up | at Room 1, second floor | repeats FREQ=WEEKLY;BYDAY=TU,TH",
        "    Bring the numbers",
        "due 2026-12-02 12:00 local | Hand in",
        "no date | Undated",
    ]
    assert "BEGIN:VEVENT" in bench.text("read_file", path="input/c.ics", raw=True)


@pytest.mark.parametrize(
    "raw",
    [
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:nonsense\nSUMMARY:kept\n",
        "BEGIN:VCALENDAR\nSUMMARY:kept",
        "BEGIN:VCALENDAR\n" + "BEGIN:VEVENT\n" * 1_500 + "SUMMARY:kept\n",
        _event("DTSTART:99991231T235959Z", "DTEND:00010101T000000Z"),
        _event("DTSTART;TZID=../../etc/passwd:20260101T000000"),
        _event("DTSTART:20260101T000000", "DTSTART:20260102T000000", "RRULE:FREQ=SECONDLY;COUNT=99999999999999"),
    ],
)
def test_hostile_calendars_are_a_result_in_bounded_time(bench: Bench, raw: str) -> None:
    (bench.attached / "c.ics").write_text(raw)
    began = time.monotonic()
    result = bench.run("read_file", path="input/c.ics")
    assert time.monotonic() - began < 25 * slack()
    assert "kept" in result.text or result.is_error
    assert "/etc" not in result.text or "passwd:" not in result.text


def test_a_csv_and_a_log_are_text(bench: Bench) -> None:
    (bench.attached / "t.csv").write_text("name,amount\r\nx,1\r\n")
    assert bench.text("read_file", path="input/t.csv") == "name,amount\nx,1"

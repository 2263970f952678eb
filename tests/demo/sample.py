"""Makes a folder as a person has it: mail with encoded headers and attachments, a calendar with zones, notes, a table.

Each thing that a brief has to find is a constant here, so that a test can look for it. The people are example.org's.
"""

from __future__ import annotations

import mailbox
from email.message import EmailMessage
from pathlib import Path

SUBJECT_ENCODED = "Überprüfung der Lüftung – Angebot bis Freitag"
SUBJECT_ATTACHED = "Invoice 4711 for the pump"
SUBJECT_HTML = "Keys of the east door"
ATTACHMENT = "invoice-4711.pdf"
APPOINTMENT = "Ventilation inspection"
WEEKLY = "Stand-up of the workshop"
NOTE_DUE = "return the borrowed torque wrench by Thursday"
TABLE_OUTLIER = "982.50"

CALENDAR = f"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example.org//sample//EN
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
TZNAME:CEST
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
TZNAME:CET
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:inspection@example.org
DTSTAMP:20261129T120000Z
DTSTART;TZID=Europe/Berlin:20261204T093000
DTEND;TZID=Europe/Berlin:20261204T110000
SUMMARY:{APPOINTMENT}
LOCATION:Hall 2\\, east door
DESCRIPTION:Bring the plans\\nand the key that
  Mira has.
END:VEVENT
BEGIN:VEVENT
UID:standup@example.org
DTSTAMP:20261101T120000Z
DTSTART;TZID=Europe/Berlin:20261102T081500
DURATION:PT15M
RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20270301T000000Z
EXDATE;TZID=Europe/Berlin:20261228T081500
SUMMARY:{WEEKLY}
END:VEVENT
END:VCALENDAR
"""

NOTES = {
    "notes/monday.md": f"# Monday\n\n- The pump in hall 2 is loud again.\n- TODO: {NOTE_DUE}.\n",
    "notes/ideas.txt": "A second meter at the east door would tell us when the ventilation runs.\n",
    "notes/nested/handover.md": "# Handover\n\nMira has the key of the east door until the inspection is over.\n",
}

TABLE = "\n".join(
    [
        "day,meter,kwh",
        *(f"2026-11-{day:02d},hall-2,{41 + day % 5}.25" for day in range(1, 29)),
        f"2026-11-29,hall-2,{TABLE_OUTLIER}",
    ]
)


def make(folder: Path) -> Path:
    """The folder, filled; nothing in it is executable and nothing is larger than a few kilobytes."""
    folder.mkdir(parents=True, exist_ok=True)
    _mail(folder / "mail.mbox")
    (folder / "calendar.ics").write_bytes(CALENDAR.replace("\n", "\r\n").encode())
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (folder / "energy.csv").write_text(TABLE + "\n", "utf-8")
    return folder


def _mail(path: Path) -> None:
    box = mailbox.mbox(path)
    try:
        for message in (_encoded(), _attached(), _html()):
            kept = mailbox.mboxMessage(message)
            kept.set_from("sender@example.org", True)
            box.add(kept)
    finally:
        box.close()


def _message(sender: str, subject: str, date: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = sender, "team@example.org"
    message["Subject"], message["Date"] = subject, date
    return message


def _encoded() -> EmailMessage:
    message = _message("Jürgen Groß <juergen@example.org>", SUBJECT_ENCODED, "Sat, 28 Nov 2026 17:02:11 +0100")
    message.set_content(
        "Bitte bis Freitag antworten.\n\nFrom here on it is a line that begins like an mbox separator.\n"
    )
    return message


def _attached() -> EmailMessage:
    message = _message("billing@example.org", SUBJECT_ATTACHED, "Sun, 29 Nov 2026 08:30:00 +0000")
    message.set_content("Please pay 1,240.00 EUR until 10 December.\n")
    message.add_attachment(b"%PDF-1.4 not really", maintype="application", subtype="pdf", filename=ATTACHMENT)
    return message


def _html() -> EmailMessage:
    message = _message("Mira <mira@example.org>", SUBJECT_HTML, "Sun, 29 Nov 2026 21:15:00 +0100")
    message.set_content("<p>I keep the <b>keys</b> until the inspection is over.</p>", subtype="html")
    return message

"""Owns what mail says: who wrote what about which subject, and the lines that ask for something."""

import re
from dataclasses import dataclass, field
from typing import Final

from deploy.rehearsal.policies.lines import best, cite, short
from deploy.rehearsal.policies.workspace import Read

START: Final = re.compile(r"^(?:--- message \d+ ---|From \S+.*\d{4})\s*$")
HEADER: Final = re.compile(r"^(From|To|Date|Subject|Cc): (.*)$", re.IGNORECASE)
MOST: Final = 12
GREETING: Final = 14


@dataclass(slots=True)
class Letter:
    first: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


def letters(read: Read) -> list[Letter]:
    """The messages of a mailbox or of a single mail, decoded by the tool or raw."""
    found: list[Letter] = []
    in_head = False
    for number, line in read.lines:
        starts = START.match(line) is not None
        if starts or not found:
            found.append(Letter(number))
            in_head = True
            if starts:
                continue
        if in_head and not line.strip():
            in_head = False
        elif in_head:
            match = HEADER.match(line)
            if match is not None:
                found[-1].headers.setdefault(match[1].lower(), match[2].strip())
        elif line.strip():
            found[-1].body.append((number, line))
    return [letter for letter in found if letter.headers]


def section(reads: list[Read]) -> list[str]:
    """Markdown lines on the mail, newest files last as they were read."""
    lines: list[str] = []
    count = 0
    for read in reads:
        for letter in letters(read):
            count += 1
            if count <= MOST:
                lines += _lines(read, letter)
    if count > MOST:
        lines.append(f"- and {count - MOST} more messages")
    return lines


def _lines(read: Read, letter: Letter) -> list[str]:
    subject = letter.headers.get("subject", "(no subject)")
    sender = letter.headers.get("from", "unknown sender")
    date = letter.headers.get("date", "")
    when = f", {short(date, 40)}" if date else ""
    head = f"- **{short(subject, 120)}** from {short(sender, 80)}{when} ({cite(read, letter.first)})"
    quotable = [
        (number, line) for number, line in letter.body if not line.startswith((">", "--")) and len(line) > GREETING
    ]
    chosen = best(quotable, 2)
    return [head, *(f"  - “{short(line)}”" for _, line in chosen)]

"""Owns which lines of a text are worth quoting: dates, amounts, asks and rare names say more than common words."""

import re
from collections.abc import Iterable
from typing import Final

from deploy.rehearsal.policies.workspace import Read

QUOTE: Final = 200
DATE: Final = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b(?:\d{1,2}(?:st|nd|rd|th)? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,4}\b"
    r"|\b\d{1,2}(?:st|nd|rd|th)? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
)
DUE: Final = re.compile(
    r"(?i)\b(?:due|deadline|overdue|urgent|to-?do|fixme|asap|no later than|by (?:tomorrow|tonight|\w+day|\d))\b"
    r"|^\s*[-*] \[ \]"
)
OPEN: Final = re.compile(r"^\s*[-*] \[ \]|\b(?:TODO|FIXME|ASAP)\b|(?i:\b(?:urgent|overdue)\b)")
AMOUNT: Final = re.compile(r"[$€£]\s?\d|\b\d[\d,.]*\s?(?:%|EUR|USD|GBP|kB|MB|GB|ms|hours?|days?)(?!\w)")
ASK: Final = re.compile(
    r"(?i)\b(?:please|could you|can you|need(?:s|ed)? to|must|should|waiting for|decide|question)\b|\?\s*$"
)
# A word of letters and digits mixed: a ticket, a serial, a key. Rare, so it tells one text from another.
RARE: Final = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{6,}\b")
HEADING: Final = re.compile(r"^\s{0,3}#{1,3}\s+\S")
PROSE: Final = re.compile(r"^[^\W\d_][^|{}]{39,}")
EMPTY: Final = re.compile(r"^[\s\-=*_#|`~+:.]*$")


SIGNS: Final = ((DUE, 3.0), (DATE, 2.0), (RARE, 2.5), (ASK, 1.5), (AMOUNT, 1.5), (HEADING, 1.2))


def best(lines: list[tuple[int, str]], count: int) -> list[tuple[int, str]]:
    """The most telling numbered lines, in their order; of equals the first. A sign on most lines tells nothing."""
    kept = [(number, line) for number, line in lines if not EMPTY.match(line)]
    worth = [(number, line, [sign.search(line) is not None for sign, _ in SIGNS]) for number, line in kept]
    common = max(3, len(worth) * 0.3)
    weights = [
        weight if sum(shown[at] for _, _, shown in worth) <= common else 0.0 for at, (_, weight) in enumerate(SIGNS)
    ]
    scored: list[tuple[float, int, str]] = []
    opening = next((number for number, line in kept if PROSE.match(line)), None)
    for number, line, shown in worth:
        points = sum(weight for weight, there in zip(weights, shown, strict=True) if there)
        points += 2.0 if number == opening else -1.5 if line.lstrip().startswith("|") else 0.0
        scored.append((-points - (0.5 if 30 < len(line) < QUOTE else 0.0), number, line))
    return sorted((number, line) for _, number, line in sorted(scored)[:count])


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short(text: str, limit: int = QUOTE) -> str:
    """One line of bounded length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


def cite(read: Read, number: int) -> str:
    return f"`{read.path}:{number}`"


def due_lines(reads: Iterable[Read], limit: int) -> list[str]:
    """Lines on something due: dated ones first, then open points. A bare `deadline` is neither."""
    found: list[tuple[bool, str]] = []
    for read in reads:
        for number, line in read.lines:
            dated = DUE.search(line) is not None and DATE.search(line) is not None
            if dated or OPEN.search(line):
                found.append((not dated, f"- {short(line.lstrip(' -*'))} ({cite(read, number)})"))
    return [text for _, text in sorted(found, key=lambda each: each[0])][:limit]

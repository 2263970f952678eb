"""Owns what logs say: how many errors and warnings, and the first and last of each."""

import re
from typing import Final

from deploy.rehearsal.policies.lines import best, cite, counted, short
from deploy.rehearsal.policies.workspace import Read

LEVELS: Final = (
    ("error", re.compile(r"\b(?:ERROR|FATAL|CRITICAL|Traceback|panic)\b|\berror\b:?", re.IGNORECASE)),
    ("warning", re.compile(r"\bWARN(?:ING)?\b", re.IGNORECASE)),
)


def section(reads: list[Read]) -> list[str]:
    """Markdown lines, one log each with its worst lines quoted."""
    lines: list[str] = []
    for read in reads:
        found = {
            name: [(number, line) for number, line in read.lines if pattern.search(line)] for name, pattern in LEVELS
        }
        counts = ", ".join(counted(len(hits), name) for name, hits in found.items())
        lines.append(f"- `{read.path}`: {counted(len(read.lines), 'line')}, {counts}")
        if not any(found.values()):
            found["line"] = best(read.lines, 2)
        for hits in found.values():
            for number, line in dict.fromkeys((hits[0], hits[-1]) if hits else ()):
                lines.append(f"  - “{short(line)}” ({cite(read, number)})")
    return lines

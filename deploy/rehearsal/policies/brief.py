"""Owns the brief: what the tools returned, quoted and cited by section. It adds no knowledge of its own."""

import re
from typing import Final

from deploy.rehearsal.policies import calendar, commits, logs, mail, tables
from deploy.rehearsal.policies.kinds import Kind, kind_of, skipped
from deploy.rehearsal.policies.lines import DATE, DUE, OPEN, best, cite, counted, due_lines, short
from deploy.rehearsal.policies.talk import BANNER
from deploy.rehearsal.policies.workspace import Read, Workspace

GOAL: Final = "Goal:"
"""Stands above the goal in what an agent is given by another."""
MOST_DUE: Final = 12
MOST_RECENT: Final = 6
MATCH: Final = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+): ?(?P<text>.*)$")
FULLY_QUOTED: Final = 8
REMARK: Final = re.compile(r"^\s*(?:#(?!!)|//|/?\*+|--|;|\"\"\"|''')\W{0,3}\s*\w.{12,}")
QUOTES: Final = {Kind.NOTE: 4, Kind.DATA: 3, Kind.CODE: 2}


def write(known: Workspace, asked: str, could_read: bool) -> str:
    """The brief in Markdown."""
    by_kind: dict[Kind, list[Read]] = {}
    for read in known.reads.values():
        by_kind.setdefault(kind_of(read.path, [line for _, line in read.lines[:20]]), []).append(read)
    history = commits.commits(known.history)
    sections: list[tuple[str, list[str]]] = [
        ("What changed", commits.section(history) + _recent(known)),
        ("Due, and dates", due_lines(_written(by_kind), MOST_DUE) or _matches(known)),
        ("Calendar", calendar.section(by_kind.get(Kind.CALENDAR, []))),
        ("Mail", mail.section(by_kind.get(Kind.MAIL, []))),
        ("Notes", _quotes(by_kind.get(Kind.NOTE, []), Kind.NOTE)),
        ("Numbers", tables.section(by_kind.get(Kind.TABLE, []))),
        ("Logs", logs.section(by_kind.get(Kind.LOG, []))),
        (
            "Other files",
            [line for kind in (Kind.DATA, Kind.CODE) for line in _quotes(by_kind.get(kind, []), kind)],
        ),
        ("Files read", _files(known)),
        ("Not done", _gaps(known, could_read)),
    ]
    parts = [BANNER, "# Brief", *_summary(known, asked, by_kind, len(history))]
    parts += ["\n".join([f"## {title}", *lines]) for title, lines in sections if lines]
    return "\n\n".join(parts)


def _written(by_kind: dict[Kind, list[Read]]) -> list[Read]:
    """What people wrote: a `todo` in a program is not a date in somebody's life."""
    return [read for kind in (Kind.NOTE, Kind.MAIL, Kind.CALENDAR) for read in by_kind.get(kind, [])]


def _summary(known: Workspace, asked: str, by_kind: dict[Kind, list[Read]], history: int) -> list[str]:
    wish = next((line for line in asked.splitlines() if line.strip() and line != GOAL), "")
    counts: list[tuple[int, str]] = [
        (len(known.files), "file"),
        (history, "commit"),
        (sum(len(mail.letters(read)) for read in by_kind.get(Kind.MAIL, [])), "message"),
        (len(by_kind.get(Kind.TABLE, [])), "table"),
        (len(by_kind.get(Kind.LOG, [])), "log"),
    ]
    told = ", ".join(counted(count, name) for count, name in counts if count)
    if known.reads:
        told += f"; {counted(len(known.reads), 'file')} read"
    return [f"Asked: “{short(wish, 240)}”" if wish else "", f"In short: {told or 'the tools showed nothing'}."]


def _recent(known: Workspace) -> list[str]:
    dated = sorted(
        (file for file in known.files.values() if len(file.modified) > 1), key=lambda file: file.modified, reverse=True
    )
    # Files that were all laid down in the same moment, by a checkout for example, say nothing by their time.
    if len({file.modified[:16] for file in dated}) < 2:
        return []
    lines = [f"- `{file.path}` changed {file.modified}" for file in dated[:MOST_RECENT]]
    return ["", "Last changed files:", *lines] if lines else []


def _matches(known: Workspace) -> list[str]:
    """What a search found, where it stands in something that a person wrote and is dated or open."""
    lines: list[str] = []
    for match in (MATCH.match(line) for line in known.matches):
        if match is None or kind_of(match["path"]) in (Kind.CODE, Kind.DATA) or skipped(match["path"]):
            continue
        if OPEN.search(match["text"]) or (DUE.search(match["text"]) and DATE.search(match["text"])):
            lines.append(f"- {short(match['text'])} (`{match['path']}:{match['line']}`)")
    return lines[:MOST_DUE]


def _quotes(reads: list[Read], kind: Kind) -> list[str]:
    lines: list[str] = []
    for at, read in enumerate(reads):
        count = QUOTES[kind] if at < FULLY_QUOTED else 2
        chosen = _said_in_code(read) if kind is Kind.CODE else best(read.lines, count)
        if chosen:
            lines.append(f"- `{read.path}`")
            lines += [f"  - “{short(line.strip())}” ({cite(read, number)})" for number, line in chosen]
    return lines


def _said_in_code(read: Read) -> list[tuple[int, str]]:
    """A program's own words about itself: its first comment or docstring, else its most telling lines."""
    words = [(number, line) for number, line in read.lines if REMARK.match(line)]
    return words[:1] or best(read.lines, 2)


def _files(known: Workspace) -> list[str]:
    reads = list(known.reads.values())
    told = ", ".join(f"`{read.path}` ({counted(len(read.lines), 'line')})" for read in reads)
    return [told] if told else []


def _gaps(known: Workspace, could_read: bool) -> list[str]:
    lines: list[str] = []
    if not could_read:
        lines.append("- No tool here reads files, so nothing is said about what stands in them.")
    unread = len(known.files) - len(known.files.keys() & known.asked)
    if could_read and unread > 0:
        lines.append(f"- {counted(unread, 'file')} seen and not opened.")
    if known.hidden:
        lines.append(f"- {counted(known.hidden, 'hidden or generated thing')} left aside.")
    lines += [
        f"- `{read.path}` was not read whole: {short(read.left_out, 120)}."
        for read in known.reads.values()
        if read.left_out
    ]
    lines += [f"- {short(failure)}" for failure in known.failures]
    return lines

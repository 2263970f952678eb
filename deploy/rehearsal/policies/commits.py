"""Owns what a history says: commits by kind, authors, and the latest of them by hash."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from deploy.rehearsal.policies.lines import counted

LINE: Final = re.compile(r"^(?P<hash>[0-9a-f]{6,40})\s+(?P<date>\d{4}-\d\d-\d\d\S*)\s+(?P<rest>\S.*)$")
LATEST: Final = 8
KINDS: Final = (
    ("fixes", re.compile(r"(?i)\b(?:fix(?:es|ed)?|bug|repair|correct|revert|hotfix)\b")),
    ("tests", re.compile(r"(?i)\b(?:tests?|proved?|proves|coverage)\b")),
    ("documents", re.compile(r"(?i)\b(?:docs?|readme|document\w*|changelog|typo)\b")),
    ("tidying", re.compile(r"(?i)\b(?:refactor|rename|clean|format|lint|bump|move[ds]?|remove[ds]?|drop)\b")),
    ("new", re.compile(r"(?i)\b(?:add(?:s|ed)?|new|introduce|implement|support|feat(?:ure)?|first)\b")),
)


@dataclass(frozen=True, slots=True)
class Commit:
    hash: str
    date: str
    author: str
    subject: str

    @property
    def kind(self) -> str:
        return next((name for name, pattern in KINDS if pattern.search(self.subject)), "other")


def commits(history: list[str]) -> list[Commit]:
    """The commits of a log's lines, in its order; lines that are none are left aside."""
    found: list[Commit] = []
    for line in history:
        match = LINE.match(line.strip())
        if match is None:
            continue
        rest = match["rest"]
        author, bar, subject = rest.partition(" | ")
        found.append(Commit(match["hash"], match["date"][:10], author if bar else "", subject if bar else rest))
    return list({commit.hash: commit for commit in found}.values())


def section(found: list[Commit]) -> list[str]:
    """Markdown lines on the history."""
    if not found:
        return []
    kinds = Counter(commit.kind for commit in found)
    days = sorted({commit.date for commit in found})
    authors = {commit.author for commit in found if commit.author}
    by = f" by {counted(len(authors), 'author')}" if authors else ""
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines = [
        f"{counted(len(found), 'commit')}{by}, {span}: "
        + ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
        + "."
    ]
    lines += [f"- `{commit.hash[:10]}` {commit.date} {commit.subject}" for commit in found[:LATEST]]
    if len(found) > LATEST:
        lines.append(f"- and {len(found) - LATEST} before these, back to `{found[-1].hash[:10]}` “{found[-1].subject}”")
    return lines

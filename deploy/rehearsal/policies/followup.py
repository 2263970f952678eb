"""Owns answers about what the transcript already shows: lines that share the question's words, with their source."""

import re
from typing import Final

from deploy.rehearsal.policies.lines import short
from deploy.rehearsal.policies.talk import BANNER
from deploy.rehearsal.policies.workspace import Workspace

MOST: Final = 6
WORD: Final = re.compile(r"[\w-]{3,}")
COMMON: Final = frozenset(
    word
    for line in (
        "the and for with that this what which when where who how was were are you",
        "your from have has had about into does did not can could would should please tell",
        "say says said there their them they its our out all any more most some just",
        "file files",
    )
    for word in line.split()
)


def reply(asked: str, known: Workspace) -> str | None:
    """An answer made of quotations, or None when nothing seen shares two words (or one rare one) with the question."""
    wanted = {word.lower() for word in WORD.findall(asked)} - COMMON
    if not wanted:
        return None
    scored: list[tuple[int, str]] = []
    for read in known.reads.values():
        for number, line in read.lines:
            shared = wanted & {word.lower() for word in WORD.findall(line)}
            weight = len(shared) + sum(any(mark.isdigit() for mark in word) for word in shared)
            if weight >= min(2, len(wanted)):
                scored.append((-weight, f"- “{short(line.strip())}” (`{read.path}:{number}`)"))
    for line in known.history:
        shared = wanted & {word.lower() for word in WORD.findall(line)}
        if len(shared) >= min(2, len(wanted)):
            scored.append((-len(shared), f"- “{short(line)}” (history)"))
    if not scored:
        return None
    found = [text for _, text in sorted(scored, key=lambda each: each[0])[:MOST]]
    return "\n".join([BANNER, "", f"On “{short(asked, 160)}”, what was read says:", "", *found])

"""The line of a long text that is least like its others: what stays of it in a stub, beside its size. Pure.

An error among a thousand lines of a log, the one remark in a file of code: whoever reads the stub sees whether the
whole is worth reading again. It is a guess that costs some forty tokens, and no model.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log

from shared.text import begun

LONGEST = 140
MOST_LINES = 4_000
_TOP = 3
"""So many of a line's rarest words count: one alone, such as an id that each line has, makes no line stand out."""
_ENOUGH = 0.8
"""It stands out by about one word that no other line has, beyond what the usual line has of such."""
_CLASSES = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "a" * 26 + "A" * 26 + "0" * 10
)
_RUN = re.compile(r"(.)\1+")
_MIXED = re.compile(r"(?:a0|0a)[a0]*")


def odd_line(text: str) -> str | None:
    """At most LONGEST characters of it; None where no line stands out. A word counts by its shape (`AB12-x` as
    `A0-a`), a shape by how few lines have it."""
    lines = [line for line in text.splitlines()[:MOST_LINES] if line.strip()]
    if len(lines) < 3:
        return None
    known: dict[str, str] = {}
    shapes = [{known.get(word) or known.setdefault(word, _shape(word)) for word in line.split()} for line in lines]
    lines_with = Counter(shape for found in shapes for shape in found)
    scores = [_score(found, lines_with, len(lines)) for found in shapes]
    best = max(range(len(lines)), key=scores.__getitem__)
    usual = sorted(scores)[len(scores) // 2]
    if scores[best] < usual + _ENOUGH * log(len(lines)):
        return None
    return begun(" ".join(lines[best].split()), LONGEST)


def _shape(word: str) -> str:
    return _MIXED.sub("x", _RUN.sub(r"\1", word.translate(_CLASSES)))


def _score(shapes: set[str], lines_with: Counter[str], lines: int) -> float:
    return sum(sorted((log(lines / lines_with[shape]) for shape in shapes), reverse=True)[:_TOP])

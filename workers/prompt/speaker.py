"""Who says what, for a model that listens to several people: each text block begins with its speaker's display name.

What a person reads stays as it was written; this is what went out, stored beside it when it is folded, for good.
"""

from __future__ import annotations

import re
import unicodedata

from shared.request import blocks

LONGEST = 60
NAMELESS = "somebody"
_LIKE_A_MARK = re.compile(r"^(?=[^\S\n]*\[[^\]\n]*\]:)", re.MULTILINE)


def named(payload: str, name: str) -> str:
    """The array of blocks with the speaker named in each text. A line that looks like such a mark is quoted, so that
    nobody puts words into another's mouth."""
    mark = shown(name)
    return blocks.join(_named(block, mark) for block in blocks.split(payload))


def shown(name: str) -> str:
    """The name on one line, without brackets, marks of direction or control characters, and not longer than a line."""
    kept = "".join(" " if char.isspace() else char for char in name if char not in "[]" and _fit(char))
    return " ".join(kept.split())[:LONGEST].strip() or NAMELESS


def _fit(char: str) -> bool:
    return char.isspace() or not unicodedata.category(char).startswith(("C", "Z"))


def _named(block: str, mark: str) -> str:
    if blocks.kind(block) != "text":
        return block
    return blocks.text(f"[{mark}]: {_LIKE_A_MARK.sub('> ', blocks.text_of(block))}")

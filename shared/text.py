"""What a text may hold: no NUL (Postgres refuses it) and no lone surrogate (UTF-8 refuses it)."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"
ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
"""What moves a cursor, colours or retitles a terminal (ECMA-48: CSI, OSC and the other strings, two-byte escapes)."""
_UNFIT = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with each NUL and lone surrogate replaced by U+FFFD; everything else, right-to-left marks too, as it
    was."""
    return _UNFIT.sub(REPLACEMENT, text)


def bounded(text: str, limit: int) -> str:
    """The text, or its first `limit` characters and a note of how many were left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit} more characters left out]"


def begun(text: str, most: int) -> str:
    """The text, or its first whole words within `most` characters and a mark that it goes on: a number or a name that
    ends where a text was cut is read as a different one."""
    if len(text) <= most:
        return text
    shown = text[: most - 1]
    if not text[most - 1].isspace():
        blank = max(shown.rfind(" "), shown.rfind("\n"))
        shown = shown[:blank] if blank > 0 else shown
    return f"{shown.rstrip()}\u2026"

"""Marks in a word for what is not a plain character: an unknown part, the home folder, a pattern.

They are private-use characters. A command that holds one of its own is not read at all, so none can be forged.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, cast

import re2

_re2 = cast("Any", re2)  # the package has no types
_MOST_CHARS = 500

HOME = "\ue000"
UNKNOWN = "\ue001"
"""Any text, also none."""
STAR, ONE = "\ue002", "\ue003"
"""An unquoted `*`; an unquoted `?` or `[…]`."""
OPEN, COMMA, CLOSE = "\ue004", "\ue005", "\ue006"
"""Unquoted braces and the commas in them."""
SPLIT = "\ue007"
"""Where a shell cuts an unquoted value into words."""
SQUARE = "\ue009"
"""An unquoted `[`."""
QUOTE = "\ue008"
"""Something was quoted here: the word stands, though it be empty."""

_SHOWN = {
    HOME: "~",
    UNKNOWN: "…",
    STAR: "*",
    ONE: "?",
    OPEN: "{",
    COMMA: ",",
    CLOSE: "}",
    SPLIT: " ",
    SQUARE: "[",
    QUOTE: "",
}
_PLAIN = str.maketrans({STAR: "*", ONE: "?", OPEN: "{", COMMA: ",", CLOSE: "}", SPLIT: " ", SQUARE: "[", QUOTE: ""})
_LIVE = str.maketrans({"*": STAR, "?": ONE, "[": SQUARE})
_AS_SHOWN = str.maketrans(_SHOWN)
_WILD = {UNKNOWN: ".*", STAR: ".*", ONE: ".", HOME: "~"}
_RUNS = re.compile(f"[{UNKNOWN}{STAR}]+")
_MARKED = re.compile("[\ue000-\ue009]")


def plain(word: str) -> str:
    """As a value is kept: patterns and braces are characters again, what is unknown stays so."""
    return word.translate(_PLAIN)


def live(value: str) -> str:
    """A value where it stands unquoted: its patterns work."""
    return value.translate(_LIVE)


def shown(word: str) -> str:
    """For a reader."""
    return word.translate(_AS_SHOWN)


def certain(word: str) -> bool:
    """Whether every character of it is known, but for the home folder's name."""
    return not any(mark in word for mark in (UNKNOWN, STAR, ONE))


@lru_cache(maxsize=128)  # each may take 100 kB, as measured with words of `_MOST_CHARS` that are all patterns
def _pattern(word: str) -> Any:
    return _re2.compile("(?is)" + "".join(_WILD.get(char) or cast("str", _re2.escape(char)) for char in word))


def could_be(word: str, name: str) -> bool:
    """Whether the word may stand for this name, whatever its case. In linear time: the word is not ours."""
    if certain(word):
        return word.casefold() == name.casefold()
    if len(word) > _MOST_CHARS:
        return True
    return _pattern(_RUNS.sub(lambda m: UNKNOWN if len(m[0]) > 1 else m[0], word)).fullmatch(name) is not None


def why_unreadable(text: str) -> str | None:
    """Why a text is not what it looks like; None where a reader and a shell see the same characters."""
    if _MARKED.search(text):
        return "it holds private characters"
    for char in text:
        if char in "\n\t" or " " <= char <= "~":
            continue
        kind = unicodedata.category(char)
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn") or (kind.startswith("Z") and char != " "):
            return f"it holds a character that is not seen (U+{ord(char):04X})"
    return None

"""Owns what a session's title may look like, whoever wrote it: one line, cut, without a sign that commands a terminal
or marks up a page. Pure."""

from __future__ import annotations

import re
import unicodedata

from shared import readable, suspicion
from shared.text import ESCAPES, REPLACEMENT, begun

MOST = 80
"""Characters of a title that no person wrote."""
MOST_OF_PERSON = 200
_LOOK = 4_000
"""Characters that are looked at: a title stands at the beginning, whatever follows."""
_LOOK_INPUT = 16_000
_TAGS = re.compile(r"</?[A-Za-z!][^<>]{0,300}>")
_LINKS = re.compile(r"!?\[([^\[\]]{0,200})\]\([^()\s]{0,1000}\)")
_HEAD = re.compile(r"^(?:[#>*\-\s]+|title\s*:|titel\s*:)+", re.IGNORECASE)
_AROUND = " \t\"'`*_\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019"
_JOINERS = "\u200c\u200d"


def clean(text: str, most: int = MOST) -> str:
    """One line of at most `most` characters that commands nothing; empty where nothing is left."""
    seen = ESCAPES.sub("", text[:_LOOK])
    return begun(" ".join("".join(_harmless(sign) for sign in seen).split()), most)


def first_line(payload: str | None) -> str:
    """Of what a person said, as an array of blocks: its first line with words. Empty where it has none."""
    if not payload:
        return ""
    lines = (clean(line) for line in readable.text_of(payload[:_LOOK_INPUT]).splitlines())
    return next((line for line in lines if line), "")


def of_model(said: str) -> str | None:
    """The title that a model's answer holds: its first line with words, without marks of a page. None where there is
    none, or where it reads like an instruction to whoever sees it next."""
    for line in ESCAPES.sub("", said[:_LOOK]).replace(REPLACEMENT, "").splitlines():
        plain = _HEAD.sub("", _LINKS.sub(r"\1", _TAGS.sub(" ", line)).strip()).strip(_AROUND)
        title = clean(plain.replace("<", " ").replace(">", " "))
        if title:
            return None if suspicion.why(title) is not None else title
    return None


def _harmless(sign: str) -> str:
    """Blanks and ends of lines as a blank; no control, no sign that turns or hides what follows, no half of a pair."""
    if sign.isspace():
        return " "
    return "" if unicodedata.category(sign).startswith("C") and sign not in _JOINERS else sign

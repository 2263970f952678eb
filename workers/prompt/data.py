"""Material in a prompt: between a pair of tags that its own text cannot close, and without what reads like an
instruction. What is left out is named where it stood, so that neither the model nor a person takes the rest for all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared import suspicion

_OPENS = "[<\uff1c\ufe64\u2039\u3008]"
_SLASHES = "[/\uff0f\u2044\u2215]"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a prompt was made without: of which source, which entry of it (from 1), and what it reads like."""

    source: str
    entry: int
    why: str

    @property
    def note(self) -> str:
        return f"[entry {self.entry} left out: it reads like an instruction {self.why}]"


def enclosed(tag: str, text: str, **attributes: object) -> str:
    """The text between `<tag …>` and `</tag>`, on lines of their own. Whatever in it looks like that end, in other
    letters or signs too, is made harmless."""
    named = "".join(f' {name}="{value}"' for name, value in attributes.items())
    end = re.compile(rf"{_OPENS}\s*({_SLASHES})\s*(?={re.escape(tag)})", re.IGNORECASE)
    inner = end.sub(r"<\\\1", text).strip()
    return f"<{tag}{named}>\n{inner}\n</{tag}>"


def without_suspects(source: str, parts: list[str]) -> tuple[list[str], tuple[LeftOut, ...]]:
    """The parts, each that reads like an instruction replaced by a note of it."""
    kept: list[str] = []
    left_out: list[LeftOut] = []
    for number, part in enumerate(parts, 1):
        why = suspicion.why(part)
        if why is not None:
            left_out.append(LeftOut(source, number, why))
        kept.append(part if why is None else left_out[-1].note)
    return kept, tuple(left_out)

"""Makes foreign text harmless to a terminal: what a model or a file wrote can be read, and commands nothing.

Control characters become visible signs instead of vanishing, so a person sees that something was there.
"""

from __future__ import annotations

import re

_C0 = {n: chr(0x2400 + n) for n in range(0x20) if n not in (0x09, 0x0A)}
_C1 = {n: f"⟨{n:02X}⟩" for n in range(0x80, 0xA0)}
# Embeddings, overrides and isolates reorder the rest of the line, a shell command among it. Marks (200E, 200F) do not.
_BIDI = {n: f"⟨{n:04X}⟩" for n in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_SIGNS: dict[int, str] = {**_C0, 0x7F: "␡", **_C1, **_BIDI, 0x2028: "\n", 0x2029: "\n", 0xFEFF: ""}
_SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: object) -> str:
    """`value` for a terminal; line ends and tabs stay."""
    return _SURROGATE.sub("�", str(value).replace("\r\n", "\n").translate(_SIGNS))


def line(value: object, width: int = 0) -> str:
    """`value` on one line, at most `width` characters where that is given."""
    flat = " ".join(text(value).split())
    if width and len(flat) > width:
        return flat[: max(width - 1, 1)] + "…"
    return flat

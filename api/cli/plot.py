"""Owns bars made of characters: one a row, the longest as wide as there is room. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_PARTS = " ▏▎▍▌▋▊▉"


def bars(rows: Sequence[tuple[str, float, str]], width: int) -> list[str]:
    """(label, value, note) as lines of at most `width` characters. A value above zero never looks like none."""
    if not rows:
        return []
    most = max((value for _, value, _ in rows), default=0.0)
    name = min(max(len(label) for label, _, _ in rows), max(width // 3, 8))
    said = max(len(note) for _, _, note in rows)
    room = max(width - name - said - 2, 8)
    return [f"{_cut(label, name)} {_bar(value, most, room)} {note}".rstrip() for label, value, note in rows]


def _bar(value: float, most: float, room: int) -> str:
    eighths = round(value / most * room * 8) if most > 0 and value > 0 else 0
    if value > 0:
        eighths = max(eighths, 1)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (_PARTS[part] if part else "")).ljust(room)


def _cut(label: str, width: int) -> str:
    return label.ljust(width) if len(label) <= width else label[: width - 1] + "…"

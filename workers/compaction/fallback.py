"""What stands for a conversation where the model could not say it: the same rows give the same text. Pure.

Extracted, not understood: the requests word for word, which files were touched, what the tools were, the last words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from shared.request import blocks
from shared.request.projection import MessageRow, Piece
from workers.compaction import framed, instruction
from workers.compaction.span import NOT_SPOKEN

CHARS_A_TOKEN = 2
"""Fewer than any text but base64 and tables of numbers has, so that the text keeps within its budget."""
_PATHS = ("path", "file_path", "file", "filename", "folder", "directory")
_LONG_RESULT = 2_000


@dataclass(frozen=True, slots=True)
class Material:
    """The middle, in order: its pieces as the model saw them, their rows, and the texts of earlier summaries in it."""

    pieces: Sequence[Piece]
    rows: dict[int, MessageRow]
    earlier: Sequence[str]


def text(material: Material, tokens: int, tools: Collection[str]) -> str:
    """At most about `tokens`, under the headings that a summary has."""
    room = max(tokens, 100) * CHARS_A_TOKEN
    found = _Found()
    for piece in material.pieces:
        _take(found, piece, material.rows.get(piece.id))
    parts = {
        "Task as asked": _newest(found.asked, room // 4, 600) or ["It is the first request, above."],
        "State": _newest(found.said, room // 6, 800),
        "Files": _newest(list(found.files), room // 8, 200),
        "Done": _newest(_done(found), room // 10, 200),
        "Facts that must not be lost": _newest(_handles(found, tools), room // 8, 200),
    }
    shown = [f"## {heading}\n{_lines(parts.get(heading, []))}" for heading, _ in instruction.SECTIONS]
    if material.earlier:
        bodies = "\n\n".join(framed.body_of(one) for one in material.earlier)
        shown.append(f"## From the summary before this one\n{_cut(bodies, room // 3)}")
    return "\n".join(shown)


class _Found:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.said: list[str] = []
        self.files: dict[str, None] = {}
        self.tools: Counter[str] = Counter()
        self.names: dict[str, str] = {}
        self.errors: list[str] = []
        self.results: list[str] = []


def _take(found: _Found, piece: Piece, row: MessageRow | None) -> None:
    for index, block in enumerate(piece.blocks):
        match blocks.kind(block):
            case "text":
                words = blocks.text_of(block).strip()
                if row is not None and row.role == "user" and row.author not in NOT_SPOKEN:
                    found.asked.append(words)
                elif piece.role == "assistant" and words:
                    found.said.append(words)
            case "tool_use":
                _call(found, blocks.parse(block))
            case "tool_result":
                _result(found, blocks.parse(block), blocks.text_of(block), f"result:{piece.id}.{index}")
            case _:
                pass


def _call(found: _Found, call: dict[str, object]) -> None:
    name = str(call.get("name", ""))
    found.tools[name] += 1
    found.names[str(call.get("id", ""))] = name
    given = call.get("input")
    arguments = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    for key in _PATHS:
        path = arguments.get(key)
        if isinstance(path, str) and path.strip():
            found.files.pop(path, None)  # the newest touch counts
            found.files[path] = None


def _result(found: _Found, result: dict[str, object], words: str, handle: str) -> None:
    name = found.names.get(str(result.get("tool_use_id", "")), "a tool")
    if result.get("is_error") is True:
        found.errors.append(f"{name} failed: {words}")
    elif len(words) > _LONG_RESULT:
        found.results.append(f"{handle} ({name}, {len(words)} characters)")


def _done(found: _Found) -> list[str]:
    calls = [f"{name}: {count} calls" if count > 1 else f"{name}: 1 call" for name, count in found.tools.most_common()]
    return [*found.errors[-5:], *calls]


def _handles(found: _Found, tools: Collection[str]) -> list[str]:
    """Long results that can be read again; without the tool for it a handle is only a riddle."""
    return found.results if "read_artifact" in tools else []


def _newest(lines: Sequence[str], room: int, each: int) -> list[str]:
    """The newest lines that fit, oldest first."""
    kept: list[str] = []
    for line in reversed(lines):
        short = _cut(" ".join(line.split()), each)
        room -= len(short) + 3
        if room < 0 and kept:
            break
        kept.append(short)
    return kept[::-1]


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "none"


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: max(most - 1, 0)]}…"

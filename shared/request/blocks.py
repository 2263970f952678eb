"""Content blocks as text: built once, cut and joined by their exact source characters, never dumped a second time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import cast

from shared.request import canonical

NO_OUTPUT = "(no output)"
"""Stands for an empty or blank tool result: the provider refuses a text block without a visible character."""

_DECODER = json.JSONDecoder()
_BLANKS = frozenset(" \t\r\n")
_TEXT_HEAD = '{"type":"text","text":"'
_GAP = re.compile(r"[ \t\r\n]*")
_KIND = re.compile(r'\{\s*"type"\s*:\s*"([a-z_]+)"')
_REASONING = re.compile(r'\{"at":(\d+),"block":(.+)\}', re.DOTALL)
_SEALED = frozenset({"thinking", "redacted_thinking", "sealed"})


def text(value: str) -> str:
    return f'{{"type":"text","text":{canonical.dump(value)}}}'


def tool_use(call_id: str, name: str, arguments_text: str) -> str:
    """A call with the model's own argument text spliced in raw: a re-dump would turn 1e2 into 100.0 and change the
    prefix. Raises ValueError unless that text is strictly one JSON object."""
    canonical.load_object(arguments_text)
    head = f'{{"type":"tool_use","id":{canonical.dump(call_id)},"name":{canonical.dump(name)}'
    return f'{head},"input":{canonical.encodable(arguments_text.strip())}}}'


def tool_result(call_id: str, result_text: str, is_error: bool = False) -> str:
    """A result. Its content is always a list: a bare string in one request and a list in the next would break the
    prefix."""
    tail = ',"is_error":true' if is_error else ""
    head = f'{{"type":"tool_result","tool_use_id":{canonical.dump(call_id)}'
    return f'{head},"content":[{text(_shown(result_text))}]{tail}}}'


def join(block_texts: Iterable[str]) -> str:
    return f"[{','.join(block_texts)}]"


def split(array_text: str) -> tuple[str, ...]:
    """The exact source text of each element of a JSON array. Raises ValueError when the text is not one JSON array."""
    at = _skip(array_text, 0)
    if array_text[at : at + 1] != "[":
        raise ValueError("not a JSON array")
    found: list[str] = []
    at = _skip(array_text, at + 1)
    while array_text[at : at + 1] != "]" or found:
        end = _element_end(array_text, at)
        found.append(array_text[at:end])
        at = _skip(array_text, end)
        mark = array_text[at : at + 1]
        if mark == "]":
            break
        if mark != ",":
            raise ValueError(f"expected , or ] at character {at} of a JSON array")
        at = _skip(array_text, at + 1)
    if _skip(array_text, at + 1) != len(array_text):
        raise ValueError("text after the end of a JSON array")
    return tuple(found)


def parse(block_text: str) -> dict[str, object]:
    return canonical.load_object(block_text)


def kind(block_text: str) -> str:
    """The block's `type`, without parsing it where the type stands first, as in every block we write."""
    found = _KIND.match(block_text)
    return found.group(1) if found else str(parse(block_text).get("type", ""))


def is_reasoning(block_text: str) -> bool:
    return kind(block_text) in _SEALED


def text_of(block_text: str) -> str:
    """The text of a text block or of a tool result; of any other block the empty text."""
    return _text_in(parse(block_text))


def shows_at_once(block_text: str) -> bool:
    """Whether a text block, as every one that we write, is seen without parsing to begin with a visible character.
    False says nothing: the system prompt, looked at for each request, is what this spares to parse."""
    first = block_text[len(_TEXT_HEAD) : len(_TEXT_HEAD) + 1]
    plain = block_text.startswith(_TEXT_HEAD) and first not in ("", '"', "\\") and not first.isspace()
    return plain and block_text.count('"text":') == 1  # inside a text its quotes are escaped


def set_text(block_text: str, new: str) -> str:
    """The block with its text replaced; every other key of it, and their order, stay. For a text block or a tool
    result."""
    value = parse(block_text)
    if value.get("type") == "text":
        value["text"] = new
    elif value.get("type") == "tool_result":
        value["content"] = [{"type": "text", "text": _shown(new)}]
    else:
        raise ValueError(f"a block of type {value.get('type')!r} has no text to set")
    return canonical.dump(value)


def append_text(block_text: str, line: str) -> str:
    """The block with one line more at its end: how a warning gets into the newest tool result, where it is a text of
    its own, so that nobody takes it for a part of what the tool said."""
    value = parse(block_text)
    parts = value.get("content")
    if value.get("type") == "tool_result" and isinstance(parts, list):
        value["content"] = [*cast("list[object]", parts), {"type": "text", "text": line}]
        return canonical.dump(value)
    return set_text(block_text, f"{text_of(block_text)}\n\n{line}".strip())


def stub(block_text: str, line: str) -> str:
    """The block reduced to a short line, with the ids that pair it left alone. Of a tool call the input is replaced:
    by the line itself when it is the text of a JSON object (what the reducer chose to keep), else by {"omitted":
    line}."""
    value = parse(block_text)
    match value.get("type"):
        case "tool_use":
            kept = line if _is_object(line) else canonical.dump({"omitted": line})
            return tool_use(str(value.get("id", "")), str(value.get("name", "")), kept)
        case "text" | "tool_result":
            return set_text(block_text, line)
        case _:
            return text(line)


def reasoning(entries: Sequence[tuple[int, str]]) -> str:
    """The text of the `blocks` column: signed reasoning, verbatim, each with its index in the content that was
    received."""
    return join(f'{{"at":{at},"block":{raw}}}' for at, raw in entries)


def split_reasoning(column: str) -> tuple[tuple[int, str], ...]:
    """The inverse of `reasoning`, in order of index."""
    found: list[tuple[int, str]] = []
    for entry in split(column):
        parts = _REASONING.fullmatch(entry)
        if parts is None:
            raise ValueError("a stored reasoning block must be written by blocks.reasoning")
        found.append((int(parts.group(1)), parts.group(2)))
    return tuple(sorted(found, key=lambda entry: entry[0]))


def splice(content: Sequence[str], entries: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """The content with each reasoning block put back at its index."""
    whole = list(content)
    for at, raw in entries:
        whole.insert(at, raw)
    return tuple(whole)


def _shown(result_text: str) -> str:
    return result_text if result_text.strip() else NO_OUTPUT


def _text_in(value: dict[str, object]) -> str:
    match value:
        case {"type": "text", "text": str(inner)}:
            return inner
        case {"type": "tool_result", "content": str(inner)}:
            return inner
        case {"type": "tool_result"}:
            inner = cast("list[dict[str, object]]", value.get("content") or [])
            return "\n".join(_text_in(part) for part in inner)
        case _:
            return ""


def _is_object(candidate: str) -> bool:
    try:
        canonical.load_object(candidate)
    except ValueError:
        return False
    return True


def _element_end(array_text: str, at: int) -> int:
    try:
        return _DECODER.raw_decode(array_text, at)[1]
    except RecursionError as error:
        raise ValueError("a content block is nested too deeply") from error


def _skip(array_text: str, at: int) -> int:
    if array_text[at : at + 1] not in _BLANKS:  # our own arrays have none; at the end of the text the slice is empty
        return at
    found = _GAP.match(array_text, at)
    return found.end() if found else at

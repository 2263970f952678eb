"""Owns the body of a request to Bedrock's Converse API, written from our own blocks. The model and whether it streams
stand in the address, not here. Pure: equal rows, equal bytes.

Invariant: each message is written from its own blocks alone; a cache point is a block behind the one that it marks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from shared.request import blocks, canonical, foreign
from shared.request.assembled import Message, Request
from shared.request.dialect import REASONED, Dialect
from shared.request.foreign import Answered, Asked, Picture, Said, Sealed
from shared.request.kept import Kept

Marks = Mapping[int, str]
"""Cache points as text, by the index of the block that each stands behind."""
_NONE: Marks = {}
_KEPT = Kept()
_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DATA = re.compile(r"data:([a-z]+/[a-z+.-]+);base64,(.*)", re.DOTALL)
NO_PICTURE = "(a picture that cannot be shown here)"
NO_TOOL = (
    '{"toolSpec":{"name":"no_tool","description":"Nothing can be called now: answer in words.",'
    '"inputSchema":{"json":{"type":"object","properties":{}}}}}'
)
"""Stands where a past with calls goes out without tools: "The toolConfig field must be defined when using toolUse and
toolResult content blocks." """
_CALLS = re.compile(r'\{"tool(?:Use|Result)":')


def body(
    request: Request, params_text: str, dialect: Dialect, of_tools: str, system: Marks, messages: Mapping[int, Marks]
) -> bytes:
    """The bytes: parameters, tools, system prompt, messages. `of_tools` is the cache point behind the tools, or empty;
    `messages` has the marks of each message that carries one, by its place in `request.messages`."""
    items: list[str] = []
    for at, message in enumerate(request.messages):
        marks = messages.get(at)
        items.extend(_known(message, dialect) if not marks else written(message, dialect, marks))
    parts = [params_text] if params_text else []
    tools = _tools(request.tools_text) if request.tools_text else ()
    if not tools and any(_CALLS.search(item) is not None for item in items):
        tools = (NO_TOOL,)
    if tools:
        parts.append(f'"toolConfig":{{"tools":{blocks.join((*tools, of_tools) if of_tools else tools)}}}')
    told = _system(request.system, system)
    if told:
        parts.append(f'"system":{blocks.join(told)}')
    parts.append(f'"messages":[{",".join(items)}]')
    return f"{{{','.join(parts)}}}".encode()


def _known(message: Message, dialect: Dialect) -> tuple[str, ...]:
    return _KEPT.get((message.role, message.blocks, dialect), lambda: written(message, dialect, _NONE))


def written(message: Message, dialect: Dialect, marks: Marks) -> tuple[str, ...]:
    """One message of ours as the one of this wire. Pictures out of results follow the last result: none may stand
    between two of them."""
    content: list[str] = []
    pictures: list[str] = []
    for at, block in enumerate(message.blocks):
        one = foreign.part(block, dialect)
        if pictures and not isinstance(one, Answered):
            content += pictures
            pictures = []
        match one:
            case Said(text):
                content.append(_text(text))
            case Picture():
                content.append(_image(one))
            case Asked(call, name, arguments):
                content.append(
                    f'{{"toolUse":{{"toolUseId":{canonical.dump(call)},"name":{canonical.dump(name)},"input":{arguments}}}}}'
                )
            case Answered(call, text, shown):
                content.append(
                    f'{{"toolResult":{{"toolUseId":{canonical.dump(call)},"content":{blocks.join([_text(text)])}}}}}'
                )
                pictures.extend(_image(picture) for picture in shown)
            case Sealed(key, value, _) if key == REASONED:
                content.append(f'{{"{REASONED}":{canonical.dump(value)}}}')
            case _:
                pass
        if at in marks:
            content += [*pictures, marks[at]]
            pictures = []
    content += pictures
    return (f'{{"role":"{message.role}","content":{blocks.join(content)}}}',) if content else ()


def _system(system: Sequence[str], marks: Marks) -> list[str]:
    told: list[str] = []
    for at, block in enumerate(system):
        text = blocks.text_of(block)
        if text.strip():  # refused, as in a message: "The text field … is blank"
            told.append(_text(text))
            told += [marks[at]] if at in marks else []
    return told


def _text(text: str) -> str:
    return f'{{"text":{canonical.dump(text)}}}'


def _image(picture: Picture) -> str:
    """Only bytes are taken here, in four formats: an address would have to be one of S3."""
    found = _DATA.fullmatch(picture.url)
    kind = _FORMATS.get(found.group(1)) if found is not None else None
    if found is None or kind is None:
        return _text(NO_PICTURE)
    return f'{{"image":{{"format":"{kind}","source":{{"bytes":{canonical.dump(found.group(2))}}}}}}}'


@lru_cache(maxsize=64)
def _tools(tools_text: str) -> tuple[str, ...]:
    return tuple(_tool(one) for one in blocks.split(tools_text))


def _tool(text: str) -> str:
    told = blocks.parse(text)
    spec: dict[str, object] = {"name": told.get("name")}
    if told.get("description"):  # an empty one is refused
        spec["description"] = told["description"]
    spec["inputSchema"] = {"json": told.get("input_schema") or {"type": "object", "properties": {}}}
    return canonical.dump({"toolSpec": spec})

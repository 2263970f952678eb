"""Owns the body of a chat completion, written from our own blocks. Pure: equal rows, equal bytes, and a conversation
that only grew is a body that only grew.

Invariant: each message is written from its own blocks alone, whatever stands around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shared.request import blocks, canonical, foreign
from shared.request.assembled import Message, Request
from shared.request.dialect import EXTRA, Dialect, NoContent, Texts
from shared.request.foreign import Answered, Asked, Picture, Said, Sealed
from shared.request.kept import Kept

Marks = Mapping[int, str]
"""Cache marks as text, by the index of the block that carries each."""
_NONE: Marks = {}
_KEPT = Kept()


def body(request: Request, params_text: str, dialect: Dialect, system: Marks, messages: Mapping[int, Marks]) -> bytes:
    """The bytes: parameters, tools, messages, the system prompt first. `messages` has the marks of each message that
    carries one, by its place in `request.messages`."""
    parts = [params_text] if params_text else []
    if request.tools_text:
        parts.append(f'"tools":{_tools(request.tools_text)}')
    items = [_system(request.system, dialect, system)] if request.system else []
    for at, message in enumerate(request.messages):
        marks = messages.get(at)
        items.extend(_known(message, dialect) if not marks else written(message, dialect, marks))
    parts.append(f'"messages":[{",".join(items)}]')
    return f"{{{','.join(parts)}}}".encode()


def _known(message: Message, dialect: Dialect) -> tuple[str, ...]:
    key = (message.role, message.blocks, dialect)
    return _KEPT.get(key, lambda: written(message, dialect, _NONE))


def written(message: Message, dialect: Dialect, marks: Marks) -> tuple[str, ...]:
    """One message of ours as messages of this wire: results are messages of their own and stand first."""
    parts = [(at, foreign.part(block, dialect)) for at, block in enumerate(message.blocks)]
    if message.role == "assistant":
        return (_assistant([(at, one) for at, one in parts if one is not None], dialect, marks),)
    items: list[str] = []
    spoken: list[str] = []
    texts: list[str] = []
    for at, one in parts:
        match one:
            case Answered():
                items.append(_result(one, dialect, marks.get(at)))
                spoken.extend(_image(picture) for picture in one.pictures)
            case Said(text):
                spoken.append(_text(text, marks.get(at)))
                texts.append(text)
            case Picture():
                spoken.append(_image(one, marks.get(at)))
            case Asked() | Sealed() | None:
                pass
    if spoken:
        plain = dialect.texts is Texts.PLAIN and len(texts) == len(spoken)
        content = canonical.dump("\n\n".join(texts)) if plain else blocks.join(spoken)
        items.append(f'{{"role":"user","content":{content}}}')
    return tuple(items)


def _system(system: Sequence[str], dialect: Dialect, marks: Marks) -> str:
    texts = [blocks.text_of(block) for block in system]
    if dialect.texts is Texts.PLAIN:
        content = canonical.dump("\n\n".join(texts))
    else:
        content = blocks.join(_text(text, marks.get(at)) for at, text in enumerate(texts))
    return f'{{"role":"system","content":{content}}}'


def _assistant(parts: Sequence[tuple[int, foreign.Part]], dialect: Dialect, marks: Marks) -> str:
    said = [(at, one.text) for at, one in parts if isinstance(one, Said)]
    asked = [one for _, one in parts if isinstance(one, Asked)]
    sealed = [one for _, one in parts if isinstance(one, Sealed)]
    members = ['"role":"assistant"', *_content(said, dialect, marks, calls=bool(asked))]
    kept: dict[str, list[object]] = {}
    for one in sealed:
        if one.call is None:
            kept.setdefault(one.key, []).append(one.value)
    if dialect.fills is not None and asked:
        kept.setdefault(dialect.fills, [""])
    members.extend(f"{canonical.dump(key)}:{_joined(values)}" for key, values in kept.items())
    if asked:
        extra = {one.call: one.value for one in sealed if one.key == EXTRA}
        members.append(f'"tool_calls":[{",".join(_call(one, extra) for one in asked)}]')
    return f"{{{','.join(members)}}}"


def _content(said: Sequence[tuple[int, str]], dialect: Dialect, marks: Marks, *, calls: bool) -> list[str]:
    if said and dialect.texts is Texts.PARTS:
        return [f'"content":{blocks.join(_text(text, marks.get(at)) for at, text in said)}']
    if said:  # joined without a gap: that is how the deltas of the reply were
        return [f'"content":{canonical.dump("".join(text for _, text in said))}']
    match dialect.no_content:
        case NoContent.NULL if calls:
            return ['"content":null']
        case NoContent.LEFT_OUT if calls:
            return []
        case _:
            return ['"content":""']


def _joined(values: Sequence[object]) -> str:
    """Several pieces of one member, as it would have come in one: texts joined, lists one after the other."""
    if all(isinstance(one, str) for one in values):
        return canonical.dump("".join(str(one) for one in values))
    flat: list[object] = []
    for one in values:
        flat.extend(one if isinstance(one, list) else [one])  # pyright: ignore[reportUnknownArgumentType] - JSON
    return canonical.dump(flat)


def _call(asked: Asked, extra: Mapping[str | None, object]) -> str:
    more = f',"extra_content":{canonical.dump(extra[asked.call])}' if asked.call in extra else ""
    function = f'{{"name":{canonical.dump(asked.name)},"arguments":{canonical.dump(asked.arguments)}}}'
    return f'{{"id":{canonical.dump(asked.call)},"type":"function","function":{function}{more}}}'


def _result(one: Answered, dialect: Dialect, mark: str | None) -> str:
    content = canonical.dump(one.text) if dialect.texts is Texts.PLAIN else blocks.join([_text(one.text, mark)])
    return f'{{"role":"tool","tool_call_id":{canonical.dump(one.call)},"content":{content}}}'


def _text(text: str, mark: str | None = None) -> str:
    return f'{{"type":"text","text":{canonical.dump(text)}{mark or ""}}}'


def _image(picture: Picture, mark: str | None = None) -> str:
    return f'{{"type":"image_url","image_url":{{"url":{canonical.dump(picture.url)}}}{mark or ""}}}'


@lru_cache(maxsize=64)
def _tools(tools_text: str) -> str:
    return blocks.join(_tool(one) for one in blocks.split(tools_text))


def _tool(text: str) -> str:
    told = blocks.parse(text)
    function: dict[str, object] = {
        "name": told.get("name"),
        "description": told.get("description") or "",
        "parameters": told.get("input_schema") or {"type": "object", "properties": {}},
    }
    return canonical.dump({"type": "function", "function": function})

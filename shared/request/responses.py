"""Owns the body of a request to the Responses API, written from our own blocks: instructions and a list of items, each
written from its own message alone. Nothing is kept at the provider (`store` is false), so each request carries all."""

from __future__ import annotations

from functools import lru_cache

from shared.request import blocks, canonical, foreign
from shared.request.assembled import Message, Request
from shared.request.dialect import ITEM, PHASE, Dialect
from shared.request.foreign import Answered, Asked, Picture, Said, Sealed
from shared.request.kept import Kept

_KEPT = Kept()


def body(request: Request, params_text: str, dialect: Dialect) -> bytes:
    parts = [params_text] if params_text else []
    if request.tools_text:
        parts.append(f'"tools":{_tools(request.tools_text)}')
    if request.system:
        parts.append(f'"instructions":{_instructions(request.system)}')
    items = (item for message in request.messages for item in _known(message, dialect))
    parts.append(f'"input":[{",".join(items)}]')
    return f"{{{','.join(parts)}}}".encode()


def _known(message: Message, dialect: Dialect) -> tuple[str, ...]:
    return _KEPT.get((message.role, message.blocks, dialect), lambda: written(message, dialect))


def written(message: Message, dialect: Dialect) -> tuple[str, ...]:
    """One message of ours as items of this wire, in order."""
    parts = [found for block in message.blocks if (found := foreign.part(block, dialect)) is not None]
    return _assistant(parts) if message.role == "assistant" else _user(parts)


def _assistant(parts: list[foreign.Part]) -> tuple[str, ...]:
    items: list[str] = []
    phase = ""
    for one in parts:
        match one:
            case Said(text):
                content = f'[{{"type":"output_text","text":{canonical.dump(text)}}}]'
                items.append(f'{{"type":"message","role":"assistant","content":{content}{phase}}}')
                phase = ""
            case Asked(call, name, arguments):
                items.append(
                    f'{{"type":"function_call","call_id":{canonical.dump(call)},"name":{canonical.dump(name)},'
                    f'"arguments":{canonical.dump(arguments)}}}'
                )
            case Sealed(key, value, _) if key == ITEM:
                items.append(canonical.dump(value))
            case Sealed(key, value, _) if key == PHASE:
                phase = f',"phase":{canonical.dump(value)}'
            case _:
                pass
    return tuple(items)


def _user(parts: list[foreign.Part]) -> tuple[str, ...]:
    items: list[str] = []
    spoken: list[str] = []
    for one in parts:
        match one:
            case Answered(call, text, pictures):
                items.append(
                    f'{{"type":"function_call_output","call_id":{canonical.dump(call)},"output":{canonical.dump(text)}}}'
                )
                spoken.extend(_image(picture) for picture in pictures)
            case Said(text):
                spoken.append(f'{{"type":"input_text","text":{canonical.dump(text)}}}')
            case Picture():
                spoken.append(_image(one))
            case _:
                pass
    if spoken:
        items.append(f'{{"type":"message","role":"user","content":{blocks.join(spoken)}}}')
    return tuple(items)


def _image(picture: Picture) -> str:
    return f'{{"type":"input_image","detail":"auto","image_url":{canonical.dump(picture.url)}}}'


@lru_cache(maxsize=64)
def _instructions(system: tuple[str, ...]) -> str:
    return canonical.dump("\n\n".join(blocks.text_of(block) for block in system))


@lru_cache(maxsize=64)
def _tools(tools_text: str) -> str:
    return blocks.join(_tool(one) for one in blocks.split(tools_text))


def _tool(text: str) -> str:
    told = blocks.parse(text)
    return canonical.dump(
        {
            "type": "function",
            "name": told.get("name"),
            "description": told.get("description") or "",
            "parameters": told.get("input_schema") or {"type": "object", "properties": {}},
            "strict": False,  # the default is true here, and refuses schemas with optional members
        }
    )

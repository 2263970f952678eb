"""A request's body: read within its bound, then made into a model, with whatever text it holds made storable.

Done by hand, since the usual way refuses lone surrogates and mangles what it cannot decode.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from api.problems import InputInvalid, faults_of
from shared.errors import Refused
from shared.text import REPLACEMENT

MOST_BODY = 12 * 1024 * 1024
BODY_S = 60.0
"""For a whole body; the largest one needs a line of 1.6 Mbit/s."""
_MOST_DRAINED = 4 * MOST_BODY
_MOST_DEPTH = 40
_MOST_VALUES = 20_000
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
M = TypeVar("M", bound=BaseModel)


async def read(request: Request) -> bytes:
    """The whole body. Raises Refused `body_too_large` (413), `body_too_slow` (408), `body_cut_off` (400).

    What is too large is still taken in and thrown away, within a bound: a client that is cut off while it sends sees
    a broken connection, not the sentence.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= MOST_BODY:
                    chunks.append(chunk)
                elif size > _MOST_DRAINED:
                    break
    except TimeoutError as error:
        text = f"the request's body did not come within {BODY_S:g} s: send it again, on a better line"
        raise Refused(text, code="body_too_slow", status=408) from error
    except ClientDisconnect as error:
        raise Refused("the request was cut off before its end", code="body_cut_off", status=400) from error
    if size > MOST_BODY:
        raise Refused(f"a request may have at most {MOST_BODY:,} bytes", code="body_too_large", status=413)
    return b"".join(chunks)


def parse(raw: bytes, model: type[M]) -> M:
    """The body as `model`; an empty body is an empty object. Raises Refused or InputInvalid."""
    _few_values(raw)
    value: object = _clean(_load(raw), 0) if raw.strip() else dict[str, object]()
    if not isinstance(value, dict):
        raise Refused("the body must be a JSON object", code="body_invalid", status=422)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise InputInvalid(faults_of(found)) from error


def _few_values(raw: bytes) -> None:
    """Bounds how many values a body may hold before one of them is made.

    Each costs fifty times its bytes as an object, and again as a fault of its own: one body of six million zeros stood
    the whole process still for forty seconds and took three gigabytes. Text may hold as many commas as it likes.
    """
    if _marks(raw) > _MOST_VALUES and _marks(_STRING.sub(b"", raw)) > _MOST_VALUES:
        raise Refused(f"the body holds more than {_MOST_VALUES:,} values", code="body_invalid", status=422)


def _marks(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _load(raw: bytes) -> object:
    try:
        return json.loads(_decode(raw), parse_constant=_refuse)
    except RecursionError as error:
        raise Refused("the body is nested too deeply", code="body_invalid", status=422) from error
    except ValueError as error:
        raise Refused(f"the body is not JSON: {str(error)[:200]}", code="body_invalid", status=422) from error


def _decode(raw: bytes) -> str:
    """UTF-8, where a lone surrogate may stand in it as such: it is replaced afterwards like an escaped one."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Refused(f"the body is not UTF-8 (byte {error.start})", code="body_not_utf8", status=422) from error


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _clean(value: object, depth: int) -> object:
    """Each lone surrogate as U+FFFD, in keys too. NUL stays: JSON can hold it, other fields replace it."""
    if depth > _MOST_DEPTH:
        raise Refused("the body is nested too deeply", code="body_invalid", status=422)
    match value:
        case str():
            return whole_characters(value)
        case list():
            return [_clean(one, depth + 1) for one in cast("list[object]", value)]
        case dict():
            found = cast("dict[str, object]", value)
            return {whole_characters(key): _clean(one, depth + 1) for key, one in found.items()}
        case _:
            return value


def whole_characters(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)
    return text

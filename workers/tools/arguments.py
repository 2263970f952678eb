"""The model's argument text becomes a checked mapping, or one line that says what is wrong and where."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from workers.tools.context import ToolRefused

MOST_CHARS = 8_000_000
"""A 1 MB file whose every character is escaped as \\uXXXX still fits."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def parse(text: str, schema: Mapping[str, object]) -> dict[str, object]:
    """The arguments, of the types that `schema` names and with no other key. Raises `ToolRefused`."""
    arguments = read(text)
    _check_object(arguments, schema, "")
    return arguments


def read(text: str) -> dict[str, object]:
    """The arguments as they come, an object of any kind. Raises `ToolRefused`."""
    if len(text) > MOST_CHARS:
        raise ToolRefused(f"the arguments are {len(text):,} characters long; at most {MOST_CHARS:,} are read")
    value = _load(text)
    if not isinstance(value, dict):
        raise ToolRefused(f"the arguments must be a JSON object, not {_kind(value)}")
    return cast("dict[str, object]", value)


def _load(text: str) -> object:
    if not text.strip():
        return {}
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = error.doc[max(0, error.pos - 20) : error.pos + 20].replace("\n", " ")
        raise ToolRefused(
            f"the arguments are not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}, near {near!r}"
        ) from error
    except RecursionError as error:
        raise ToolRefused("the arguments are nested too deeply") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise ToolRefused("the arguments hold a number that is too long") from error


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ToolRefused(f"the arguments name {_short(key)} twice")
        result[key] = value
    return result


def _no_constant(name: str) -> object:
    raise ToolRefused(f"the arguments are not valid JSON: {name} is no JSON value")


def _check_object(value: dict[str, object], schema: Mapping[str, object], where: str) -> None:
    known = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    required = cast("Sequence[str]", schema.get("required", ()))
    missing = [f"{where}{key}" for key in required if key not in value]
    if missing:
        raise ToolRefused(f"missing argument: {', '.join(missing)}")
    extra = [f"{where}{_short(key)}" for key in value if key not in known]
    if extra:
        raise ToolRefused(f"unknown argument: {', '.join(extra[:5])}; known are {', '.join(known)}")
    for key, item in value.items():
        value[key] = _check(item, known[key], f"{where}{key}")


def _check(value: object, schema: Mapping[str, object], where: str) -> object:
    wanted = str(schema["type"])
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    wrong_bool = isinstance(value, bool) and wanted != "boolean"
    if wrong_bool or not isinstance(value, _TYPES[wanted]):
        raise ToolRefused(f"{where} must be {_article(wanted)}, not {_kind(value)}")
    if isinstance(value, str):
        _check_length(value, schema, where)
    if isinstance(value, int):
        _check_range(value, schema, where)
    if isinstance(value, list):
        items = cast("list[object]", value)
        _check_items(items, schema, where)
    if isinstance(value, dict):
        _check_object(cast("dict[str, object]", value), schema, f"{where}.")
    return cast("object", value)


def _check_range(value: int, schema: Mapping[str, object], where: str) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int) and value < least:
        raise ToolRefused(f"{where} must be at least {least}")
    if isinstance(most, int) and value > most:
        raise ToolRefused(f"{where} must be at most {most}")


def _check_length(value: str, schema: Mapping[str, object], where: str) -> None:
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(value) < least:
        raise ToolRefused(f"{where} is empty")
    if isinstance(most, int) and len(value) > most:
        raise ToolRefused(f"{where} is {len(value):,} characters long; at most {most:,} are taken")


def _check_items(items: list[object], schema: Mapping[str, object], where: str) -> None:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if isinstance(least, int) and len(items) < least:
        raise ToolRefused(f"{where} has {len(items)} items; at least {least} is needed")
    if isinstance(most, int) and len(items) > most:
        raise ToolRefused(f"{where} has {len(items)} items; at most {most} are taken")
    each = cast("Mapping[str, object]", schema["items"])
    for index, item in enumerate(items):
        items[index] = _check(item, each, f"{where}[{index}]")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    for name, types in (("boolean", bool), ("integer", int), ("number", float), *_TYPES.items()):
        if isinstance(value, types):
            return _article(name)
    return "something else"


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _short(key: str) -> str:
    return repr(key if len(key) <= 40 else key[:40] + "…")

"""Our one way to write JSON: compact, key order kept, always encodable as UTF-8. What was written once is never
dumped again."""

from __future__ import annotations

import json
import re
from typing import cast

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(json_text: str) -> str:
    """The same JSON with each lone surrogate escaped, so that Postgres and UTF-8 take it. Such a character can only
    stand inside a string of the text, where the escape means the same."""
    if json_text.isascii():
        return json_text
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", json_text)


def dump(value: object) -> str:
    """Compact JSON. Raises ValueError on NaN and infinities, which no provider takes, and TypeError on what JSON
    does not know."""
    return encodable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))


def load_strict(text: str) -> object:
    """The value of one JSON text. Raises ValueError on anything that is not strictly JSON, on numbers that are not
    finite (NaN, Infinity, 1e999) and on nesting deeper than the parser goes. Of a repeated key the last value
    counts."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("the JSON text is nested too deeply") from error


def load_object(text: str) -> dict[str, object]:
    """As `load_strict`, and ValueError unless the value is an object."""
    value = load_strict(text)
    if isinstance(value, dict):
        return cast("dict[str, object]", value)
    raise ValueError("the JSON text is not an object")


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0.0:
        raise ValueError(f"{digits[:40]} is out of range")
    return number

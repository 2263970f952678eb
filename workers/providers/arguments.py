"""Owns what a model's tool call may look like. Invariant: a checked call can be sent back without a 400."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson

from shared.redact import REDACTOR
from shared.request import canonical
from shared.text import REPLACEMENT, clean_text
from workers.providers.replies import ToolCall

DEPTH_LIMIT = 200
"""Far below where Python's own parser gives up, which depends on how deep its caller stands."""
MENDED = "unfit_"
"""How a name begins that had to be mended. No tool's does, so what is stored of such a call can never name one."""
NAMELESS = "unnamed_tool"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_BRACKET = re.compile(r"[\[\]{}]")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


def checked_call(head: Mapping[str, Any], arguments: str, *, taken: set[str], seed: str) -> ToolCall:
    """The call, without known keys in its arguments: it is stored, shown and run so. Its id is unique among `taken`
    (which takes it up). Ids that are missing, unfit or double are made from `seed` alone, so that the same reply always
    gives the same ids."""
    told_id = head.get("id")
    fits = isinstance(told_id, str) and _ID.fullmatch(told_id) is not None and told_id not in taken
    call_id = str(told_id) if fits else _made_id(seed)
    taken.add(call_id)
    told_name = head.get("name")
    name = told_name if isinstance(told_name, str) else ""
    text = arguments if arguments.strip() else _whole_input(head.get("input"))
    fit = name if _NAME.fullmatch(name) else (MENDED + _UNFIT.sub("_", name))[:128] if name else NAMELESS
    kept = REDACTOR.without_known(clean_text(text))
    if why_malformed(text) is not None and why_malformed(kept) is None:
        kept += REPLACEMENT  # cleaned, it could be read: after a crash a call would run that nobody sent
    return ToolCall(call_id, fit, kept, why_unfit(fit, kept))


def why_unfit(name: str, arguments_text: str) -> str | None:
    """Why a call may not run, or None, from what is stored of it alone: the worker that goes on after a crash judges it
    as the one did that received it."""
    if name == NAMELESS:
        return "the name of the tool is missing"
    if name.startswith(MENDED):
        return "the name of the tool is not one a tool can have"
    return why_malformed(arguments_text)


def why_malformed(text: str) -> str | None:
    """Why this text is not the arguments of a call, or None. As strict as a provider, which refuses lone surrogates."""
    if _depth(text) > DEPTH_LIMIT:
        return f"the arguments are nested deeper than {DEPTH_LIMIT} levels"
    try:
        value: object = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError) as error:
        if isinstance(error, orjson.JSONDecodeError) and error.pos >= len(text.rstrip()):
            return "the arguments end in the middle: the JSON is cut off"
        return f"the arguments are not valid JSON: {clean_text(str(error))[:200]}"
    if not isinstance(value, dict):
        return f"the arguments are a JSON {type(value).__name__}, not an object"
    return None


def _whole_input(told: object) -> str:
    """Some servers tell the whole input with the block's start and no deltas, some of them as text. What is no object
    stays what it is: a tool that ran on `{}` in its place would do what nobody asked for."""
    match told:
        case None:
            return "{}"
        case str():
            return told if told.strip() else "{}"
        case _:
            return canonical.dump(told)


def _depth(text: str) -> int:
    """How deeply brackets nest, counting those inside strings too: enough to bound, and quick where there are few."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return 0
    deepest = depth = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found.group() in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _made_id(seed: str) -> str:
    return "toolu_" + hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:24]

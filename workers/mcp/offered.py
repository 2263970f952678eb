"""Which of a server's tools are offered, and how the model sees them. Pure: what a server says is hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from shared import mcp, suspicion
from shared.mcp import McpServer
from shared.text import bounded, clean_text

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_NAME = 64
_MOST_SCHEMA = 8_000
_MOST_DEPTH = 12
_MOST_DESCRIPTION = 1_000
MOST_TOOLS = 64


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as it will be offered; `tool` is what its server calls it."""

    name: str
    tool: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Offers:
    """What is offered, and why each of the rest is not, by the server's name for it."""

    offers: tuple[Offer, ...]
    left_out: Mapping[str, str]


def judge(server: str, config: McpServer, listed: Sequence[Mapping[str, Any]]) -> Offers:
    """The tools of a list as the bridge tells it, at most `MOST_TOOLS`, the first of each name."""
    offers: dict[str, Offer] = {}
    left_out: dict[str, str] = {}
    for entry in listed:
        tool = str(entry.get("name", ""))
        found = _one(server, tool, entry) if _wanted(config, tool) else None
        if isinstance(found, str):
            left_out[clean_text(tool[:80])] = found
        elif found is not None and found.name not in offers:
            if len(offers) < MOST_TOOLS:
                offers[found.name] = found
            else:
                left_out[tool] = f"a server has at most {MOST_TOOLS} tools here"
    for tool in config.tools or ():
        if mcp.tool_name(server, tool) not in offers and tool not in left_out:
            left_out[tool] = "the server has no such tool"
    return Offers(tuple(offers[name] for name in sorted(offers)), left_out)


def _wanted(config: McpServer, tool: str) -> bool:
    return config.tools is None or tool in config.tools


def _one(server: str, tool: str, entry: Mapping[str, Any]) -> Offer | str:
    name = mcp.tool_name(server, tool)
    if _NAME.fullmatch(tool) is None or len(name) > _MOST_NAME:
        return "its name is none that a model can call"
    schema = _schema(entry.get("schema"))
    if isinstance(schema, str):
        return schema
    return Offer(name, tool, _description(str(entry.get("description", ""))), schema)


def _schema(text: object) -> dict[str, object] | str:
    if not isinstance(text, str) or len(text) > _MOST_SCHEMA:
        return f"its schema is longer than {_MOST_SCHEMA:,} characters"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "its schema is no JSON"
    if not isinstance(value, dict):
        return "its schema is no object"
    schema = cast("dict[str, object]", value)
    if schema.get("type", "object") != "object":
        return "its schema is not that of an object"
    why = _too_deep(schema, 0) or _cycle(schema)
    if why is not None:
        return why
    if suspicion.why(text) is not None:
        return "its schema reads like an instruction"
    return {**schema, "type": "object"}


def _too_deep(value: object, depth: int) -> str | None:
    if depth > _MOST_DEPTH:
        return f"its schema is more than {_MOST_DEPTH} levels deep"
    inner = _inner(value)
    return next((why for one in inner if (why := _too_deep(one, depth + 1)) is not None), None)


def _inner(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def _cycle(schema: dict[str, object]) -> str | None:
    """References only to definitions of its own, and none that comes back to itself: that describes no end."""
    definitions = {
        f"#/{place}/{name}": body
        for place in ("$defs", "definitions")
        for name, body in _object(schema.get(place)).items()
    }
    edges = {name: _references(body) for name, body in definitions.items()}
    edges["#"] = _references({key: body for key, body in schema.items() if key not in ("$defs", "definitions")})
    if any(target not in edges for targets in edges.values() for target in targets):
        return "its schema refers to what it does not define"
    done: set[str] = set()
    while ready := [name for name, targets in edges.items() if name not in done and set(targets) <= done]:
        done.update(ready)
    return None if len(done) == len(edges) else "its schema refers to itself"


def _object(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _references(value: object) -> tuple[str, ...]:
    here = _object(value).get("$ref")
    found = (here,) if isinstance(here, str) else ()
    return found + tuple(target for one in _inner(value) for target in _references(one))


def _description(text: str) -> str:
    """A description enters the prompt of every session: one that reads like an instruction does not."""
    words = " ".join(clean_text(text).split())
    why = suspicion.why(words)
    if why is not None:
        return f"[the server's description is left out: it reads like an instruction {why}]"
    return bounded(words, _MOST_DESCRIPTION) or "[the server does not say what it does]"

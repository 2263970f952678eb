"""In the bridge: what a server said, as a worker is told it: plain values, cut to what is wanted, none of its errors'
words."""

from __future__ import annotations

import json
from typing import Any, cast

from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT, CallToolResult, Tool

MOST_TOOLS = 128
MOST_TEXT = 1_000_000
_MOST_SCHEMA = 20_000
_MOST_WORDS = 4_000
_NO_ANSWER = (REQUEST_TIMEOUT, CONNECTION_CLOSED)
"""Codes that the SDK itself gives: the server said nothing."""


def tool(found: Tool) -> dict[str, Any]:
    """`{"name", "description", "schema"}`; the schema as text, None where it is longer than anybody sends on."""
    try:
        schema = json.dumps(found.input_schema)
    except (ValueError, RecursionError, TypeError):
        schema = ""
    return {
        "name": found.name[:200],
        "description": (found.description or "")[:_MOST_WORDS],
        "schema": schema if 0 < len(schema) <= _MOST_SCHEMA else None,
    }


def result(found: CallToolResult) -> dict[str, Any]:
    """`{"text", "is_error", "left_out"}`: the texts, each other block as a line that says what it is."""
    parts: list[str] = []
    left_out = 0
    room = MOST_TEXT
    for block in found.content:
        words = _words(block)
        parts.append(words[: max(0, room)])
        left_out += max(0, len(words) - max(0, room))
        room -= len(words)
    if not parts and found.structured_content is not None:
        words = json.dumps(found.structured_content, ensure_ascii=False)
        parts, left_out = [words[:MOST_TEXT]], max(0, len(words) - MOST_TEXT)
    return {"text": "\n".join(parts), "is_error": bool(found.is_error), "left_out": left_out}


def refusal(error: MCPError) -> dict[str, Any]:
    """As `result`, of a call that the server answered with an error of the protocol; `failed` where it did not."""
    if error.code in _NO_ANSWER:
        return {"failed": "time" if error.code == REQUEST_TIMEOUT else "unreachable"}
    return {"text": error.message[:_MOST_WORDS], "is_error": True, "left_out": 0}


def _words(block: Any) -> str:
    kind = str(getattr(block, "type", "?"))
    if kind == "text":
        return str(block.text)
    inner = getattr(block, "resource", None)
    if kind == "resource" and isinstance(getattr(inner, "text", None), str):
        return str(inner.text) if inner is not None else ""
    if kind == "resource_link":
        return f"[a link: {str(getattr(block, 'uri', ''))[:500]}]"
    data = getattr(block, "data", None) or getattr(inner, "blob", None) or ""
    mime = str(getattr(block, "mime_type", None) or getattr(inner, "mime_type", None) or "")[:80]
    return f"[{kind[:20]} {mime}, about {len(data) * 3 // 4:,} bytes, not shown]"


def why(error: BaseException) -> str:
    """One word of ours for what went wrong."""
    inner = _innermost(error)
    if isinstance(inner, TimeoutError):
        return "time"
    if isinstance(inner, MCPError):
        return {REQUEST_TIMEOUT: "time", CONNECTION_CLOSED: "unreachable"}.get(inner.code, "refused")
    if isinstance(inner, (OSError, EOFError)):
        return "unreachable"
    return (
        "broken"
        if type(inner).__module__.startswith(("mcp", "pydantic", "anyio", "jsonschema"))
        else type(inner).__name__
    )


def _innermost(error: BaseException) -> BaseException:
    """The SDK's task groups wrap what happened, several times over."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error

"""One call of a server's tool: what is sent, what is made of the answer, and the truth where none came."""

from __future__ import annotations

from typing import Any

from shared.mcp import McpServer
from shared.values import Repeat
from workers.mcp import frames
from workers.mcp.connection import Connection, Gone, Late, Refused
from workers.mcp.offered import Offer
from workers.mcp.server import Server, words
from workers.tools.context import (
    Arguments,
    ToolContext,
    ToolLost,
    ToolRefused,
    ToolResult,
    ToolStopped,
    check_acting,
    check_going,
)
from workers.web import foreign

CAP = 100_000
_ROOM = 1_000


def call(
    server: Server,
    connection: Connection,
    config: McpServer,
    offer: Offer,
    context: ToolContext,
    arguments: Arguments,
) -> ToolResult:
    """The answer as material between tags. Raises ToolRefused where nothing was done or it may be asked again, and
    ToolLost where the call went out, may not be repeated, and nobody knows what came of it."""
    once = context.repeat is not Repeat.REPEATABLE
    (check_acting if once else check_going)(context)
    try:
        with server.used():
            answer = connection.ask(
                config.call_s,
                context.over,
                do="call",
                tool=offer.tool,
                arguments=dict(arguments),
                limit_s=config.call_s,
            )
    except frames.Broken as error:
        raise ToolRefused("the arguments are too long for a tool server; nothing was done") from error
    except Late as error:
        cancelled = context.cancelled()
        if not cancelled:
            server.suspect(connection, "it did not answer in time")
        why = "cancelled while it ran" if cancelled else "it did not answer in time"
        raise _unanswered(server, why, once=once, cancelled=cancelled) from error
    except Gone as error:
        server.suspect(connection, "it ended during a call")
        raise _unanswered(server, "it ended during the call", once=once) from error
    except Refused as error:
        server.suspect(connection, words(error), over=error.why != "time")
        raise _unanswered(server, words(error), once=once) from error
    server.answered()
    return shown(server.name, answer)


def _unanswered(
    server: Server, why: str, *, once: bool, cancelled: bool = False
) -> ToolLost | ToolRefused | ToolStopped:
    if once:
        return ToolLost(f"outcome unknown: the tool server {server.name}: {why}; it may have happened, so check")
    if cancelled:
        return ToolStopped("cancelled before it had finished")
    return ToolRefused(f"the tool server {server.name}: {why}; it may be asked again")


def shown(name: str, answer: dict[str, Any]) -> ToolResult:
    """An answer as the model sees it. That it is an error is the server's word."""
    text, left_out = str(answer.get("text", "")), int(answer.get("left_out", 0))
    if len(text) > CAP - _ROOM:
        left_out += len(text) - (CAP - _ROOM)
        text = text[: CAP - _ROOM]
    note = f"{left_out:,} more characters were left out" if left_out else None
    body = foreign.as_data("tool-server", text or "[an answer without a text]", name=name)
    return ToolResult(f"{body}\n[{note}]" if note else body, is_error=bool(answer.get("is_error")), note=note)

"""Rows as the store would hold them, made for tests of the request."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from shared.request import blocks
from shared.request.projection import MessageRow, Prefix

STEADY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: a loaded machine is slow, which says nothing about what is tested."""

STABLE, CONTEXT, VOLATILE = "You work at night.", "The team keeps notes.", "Session 1, 2026-11-30."
TOOLS = (
    '[{"name":"read_file","description":"Reads.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}},'
    '{"name":"todo","description":"Keeps a list.","input_schema":{"type":"object","properties":{}}}]'
)
PREFIX = Prefix(
    digest="p1",
    system_text=blocks.join(blocks.text(tier) for tier in (STABLE, CONTEXT, VOLATILE)),
    stable_length=len(STABLE),
    context_length=len(CONTEXT),
    tools_text=TOOLS,
)


def thinking(signature: str) -> str:
    return f'{{"type":"thinking","thinking":"","signature":"{signature}"}}'


def row(
    number: int,
    role: str,
    *content: str,
    sent: str | None = None,
    reasoning: str | None = None,
    scaffold: int | None = None,
) -> MessageRow:
    author = "person" if role == "user" else "model"
    return MessageRow(number, "t1", 1, number, author, role, blocks.join(content), sent, reasoning, scaffold)


def user(number: int, text: str, scaffold: int | None = None) -> MessageRow:
    return row(number, "user", blocks.text(text), scaffold=scaffold)


def answer(number: int, text: str) -> MessageRow:
    return row(number, "assistant", blocks.text(text))


def calls(number: int, *ids: str, text: str = "", signature: str = "") -> MessageRow:
    said = (blocks.text(text),) if text else ()
    uses = tuple(blocks.tool_use(one, "read_file", '{"path":"a.txt"}') for one in ids)
    reasoning = blocks.reasoning([(0, thinking(signature))]) if signature else None
    return row(number, "assistant", *said, *uses, reasoning=reasoning)


def result(number: int, call_id: str, text: str = "forty-two") -> MessageRow:
    return row(number, "user", blocks.tool_result(call_id, text))


def conversation() -> list[MessageRow]:
    """A turn of two steps, the first with two parallel calls, and the next question."""
    return [
        user(1, "What is in a.txt?"),
        calls(2, "c1", "c2", text="I look.", signature="s2"),
        result(3, "c1"),
        result(4, "c2"),
        calls(5, "c3", signature="s5"),
        result(6, "c3"),
        answer(7, "Forty-two."),
        user(8, "And in b.txt?"),
    ]

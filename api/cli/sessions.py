"""Owns `sessions` and `show`: what a person reads of what happened."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from api.cli import context, live, pages, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit

RESULT_WIDTH = 160
Block = Mapping[str, Any]


def sessions(client: Client, asked: argparse.Namespace) -> Exit:
    found = list(pages.rows(client, "/v1/sessions", limit=asked.limit))
    if asked.json:
        screen.as_json(found)
        return Exit.DONE
    rows = [
        (
            row["id"],
            row.get("status") or "idle",
            screen.unknown(row),
            screen.money(row.get("cost_usd")),
            screen.when(row.get("created_at")),
            safe.line(row.get("title") or "", 60),
        )
        for row in found
    ]
    screen.table(
        ("session", "status", "unknown", "cost", "begun", "title"),
        rows,
        right=("cost",),
        none="no sessions yet: nightshift send TEXT begins one",
    )
    return Exit.DONE


def show(client: Client, asked: argparse.Namespace) -> Exit:
    if asked.context:
        found = context.read(client, asked.session)
        if asked.json:
            screen.as_json(found)
        else:
            for line in context.told(found):
                screen.say(line)
        return Exit.DONE
    session: dict[str, Any] = client.get(f"/v1/sessions/{asked.session}")
    messages = list(pages.rows(client, f"/v1/sessions/{asked.session}/messages", view="transcript"))
    children = list(pages.rows(client, f"/v1/sessions/{asked.session}/children"))
    if asked.json:
        screen.as_json({"session": session, "messages": messages, "children": children})
        return Exit.DONE
    cost = screen.money(session.get("cost_usd"))
    if children:
        cost += f" and {screen.money(_sum(children))} of {len(children)} children"
    screen.say(f"{session.get('title') or 'untitled'} · {session.get('model')} · {cost}")
    screen.say(
        f"session {session['id']} · {session.get('status') or 'idle'} · {screen.when(session.get('created_at'))}"
    )
    if session.get("unknown_effects"):
        screen.say(screen.unknown_sentence(session))
    screen.note_rehearsal(client.target.is_rehearsal)
    for text in transcript(messages, children, with_results=asked.tools):
        screen.say(text)
    return Exit.DONE


def _sum(children: Sequence[Mapping[str, Any]]) -> float | None:
    """One unknown bill makes the sum unknown."""
    costs = [child.get("cost_usd") for child in children]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def transcript(
    messages: Iterable[Mapping[str, Any]], children: Sequence[Mapping[str, Any]] = (), *, with_results: bool = False
) -> Iterable[str]:
    """Messages as a person reads them: who, when, the text; each tool call with its result folded to a line, and with
    the children that it made."""
    made: dict[tuple[object, ...], list[str]] = {}
    for child in children:
        place = (child.get("parent_id"), child.get("step"), child.get("ordinal"))
        made.setdefault(place, []).append(_child(child))
    called: dict[str, str] = {}
    for message in messages:
        blocks = _blocks(message.get("content"))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        if len(results) < len(blocks) or not blocks:
            yield f"\n{_head(message)}"
        ordinal = 0
        for block in blocks:
            match block.get("type"):
                case "text":
                    yield str(block.get("text") or "")
                case "tool_use":
                    name = {"tool": block.get("name"), "arguments": block.get("input")}
                    called[str(block.get("id"))] = live.call(name)
                    yield f"  → {live.call(name)}"
                    ordinal += 1
                    yield from made.get((message.get("turn_id"), message.get("step"), ordinal), ())
                case "tool_result":
                    unknown = message.get("unknown_effect") is True
                    yield _result(block, called, with_results=with_results, unknown=unknown)
                case "thinking" | "redacted_thinking" | "sealed":
                    continue
                case kind:
                    yield f"  [{kind}]"


def _child(child: Mapping[str, Any]) -> str:
    bill = f"{child.get('steps_used')} steps · {screen.money(child.get('cost_usd'))}"
    where = " · in the background" if child.get("background") else ""
    title = safe.line(child.get("title") or "", 60)
    unknown = screen.unknown(child)
    where += f" · {unknown} unknown" if unknown else ""
    return (
        f"    ↳ child {child.get('number')} {child.get('status')}{where} · {bill} · {title} · {child.get('session_id')}"
    )


def _head(message: Mapping[str, Any]) -> str:
    state = message.get("state", "live")
    marks = ([] if state == "live" else [f"({state})"]) + (["(cut short)"] if message.get("cut") else [])
    return " · ".join((str(message.get("author")), screen.when(message.get("created_at")), *marks))


def _result(block: Block, called: Mapping[str, str], *, with_results: bool, unknown: bool = False) -> str:
    text = "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in _blocks(block.get("content")))
    name = called.get(str(block.get("tool_use_id")), "").partition("(")[0]
    mark = "?" if unknown else "✗" if block.get("is_error") else "✓"
    if with_results:
        return "\n".join((f"  {mark} {name}", *(f"    {line}" for line in text.splitlines())))
    shown = safe.line(text, RESULT_WIDTH) if block.get("is_error") else f"{len(text):,} characters"
    return f"  {mark} {name}: {shown}"


def _blocks(content: object) -> Sequence[Block]:
    """Content is a list of blocks, or text that stands for one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [cast("Block", block) for block in cast("list[object]", content) if isinstance(block, dict)]

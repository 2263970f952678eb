"""Owns the recall policy: a question about one fact, answered from what the request shows, else looked for.

It sees the request alone. Where the fact stands nowhere in it, it pages back what was cut away near the thing asked
for, or searches, reads what a hit names and looks within its conversation, whichever is offered, and says so when it
finds nothing.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from deploy.rehearsal.loose import Json, object_or_empty
from deploy.rehearsal.policies.steps import steps_done
from deploy.rehearsal.policies.view import texts_of
from deploy.rehearsal.reply import Reply, ToolWish

ASKED: Final = re.compile(r"Question: what is (?P<subject>.+?)\?")
HIT: Final = re.compile(r"^session (?P<session>[0-9a-f-]{36}) .*$(?P<told>(?:\n .*)*)", re.MULTILINE)
HANDLE: Final = re.compile(r"(?:result:\d+\.\d+|artifact:[0-9a-f-]{36})")
NEXT: Final = re.compile(r"offset[=: ]+\"?(\d+)")
MOST: Final = 6
PAGE, SEARCH, READ = "read_artifact", "session_search", "read_file"


@dataclass(frozen=True, slots=True)
class Recall:
    """It has nothing to be told."""


@dataclass(frozen=True, slots=True)
class _Result:
    """A call and its result, as the request shows them."""

    tool: str
    input: Json
    text: str


def reply(request: Json) -> Reply:
    """`SUBJECT is VALUE.`, a call that may find it, or that it is not to be found."""
    messages: list[Json] = request["messages"]
    subject = _subject(messages)
    if subject is None:
        return Reply(text="Rehearsal: nothing was asked.")
    value = _value(messages, subject)
    if value is not None:
        return Reply(text=f"{subject} is {value}.")
    done = steps_done(messages)
    tools: list[Json] = request.get("tools") or []
    offered = {str(tool["name"]) for tool in tools}
    wish = _next(messages, subject, done, offered) if done < MOST else None
    return Reply(text=f"I cannot find what {subject} is.") if wish is None else Reply(tools=(wish,))


def _subject(messages: list[Json]) -> str | None:
    for message in reversed(messages):
        if message["role"] == "user":
            for text in reversed(list(texts_of(message["content"]))):
                found = list(ASKED.finditer(text))
                if found:
                    return found[-1]["subject"]
    return None


def _value(messages: list[Json], subject: str) -> str | None:
    pattern = re.compile(re.escape(subject) + r"[*`\"\\]*\s*(?:is|=|:|是)\s*[*`\"\\]*([A-Z]{2}\d{4}-[A-Z]+)")
    for message in reversed(messages):
        for text in _texts(message["content"]):
            found = pattern.search(text)
            if found:
                return found[1]
    return None


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for block in content:
        if block["type"] == "text":
            found.append(block["text"])
        elif block["type"] == "tool_result":
            found += _texts(block.get("content") or "")
    return found


def _next(messages: list[Json], subject: str, done: int, offered: set[str]) -> ToolWish | None:
    """The call that is most likely to bring it, none twice in a turn."""
    results = _results(messages)
    asked = results[len(results) - _asked(messages, done) :]
    name = subject.rpartition(" ")[2]
    thing = name.lower()
    used = [(one.tool, one.input.get("handle"), one.input.get("offset")) for one in asked]
    if PAGE in offered:
        for one in reversed(asked):
            more = NEXT.search(one.text) if one.tool == PAGE else None
            if more and (PAGE, one.input["handle"], int(more[1])) not in used:
                return ToolWish(PAGE, {"handle": one.input["handle"], "offset": int(more[1])})
        for handle in _handles(results, messages, thing):
            if not any(tool == PAGE and known == handle for tool, known, _ in used):
                return ToolWish(PAGE, {"handle": handle})
    searches = [one for one in asked if one.tool == SEARCH]
    # One hit a conversation is shown: others of it are found within.
    near = dict.fromkeys(hit["session"] for one in searches for hit in _hits(one.text, thing))
    within: list[Json] = [{"query": name, "session": session} for session in near]
    for query in ({"query": subject}, {"query": name}, *within):
        if SEARCH in offered and query not in [one.input for one in searches]:
            return ToolWish(SEARCH, query)
    for one in results:
        path = one.input.get("path")
        if READ in offered and isinstance(path, str) and thing in path and not any(t == READ for t, _, _ in used):
            return ToolWish(READ, {"path": path})
    return None


def _asked(messages: list[Json], done: int) -> int:
    """How many calls this turn has made."""
    found = 0
    for message in reversed(messages):
        if message["role"] == "user" and not isinstance(message["content"], str):
            results = sum(block["type"] == "tool_result" for block in message["content"])
            if not results or not done:
                break
            found += results
            done -= 1
    return found


def _handles(results: list[_Result], messages: list[Json], thing: str) -> list[str]:
    """Handles of what was cut away near the thing: its call or its line names it. Newest first."""
    found: list[str] = []
    for one in reversed(results):
        if one.tool == SEARCH:
            found += [handle for hit in _hits(one.text, thing) for handle in HANDLE.findall(hit["told"])]
        elif len(one.text) < 2_000 and (thing in str(one.input).lower() or thing in one.text.lower()):
            found += HANDLE.findall(one.text)
    for message in reversed(messages):
        for text in _texts(message["content"]):
            for line in text.splitlines():
                if thing in line.lower():
                    found += HANDLE.findall(line)
    return list(dict.fromkeys(found))


def _hits(found: str, thing: str) -> list[re.Match[str]]:
    """Of what a search found, those that name the thing."""
    return [hit for hit in HIT.finditer(found) if thing in hit["told"].lower()]


def _results(messages: list[Json]) -> list[_Result]:
    calls: dict[str, Json] = {}
    found: list[_Result] = []
    for message in messages:
        if isinstance(message["content"], str):
            continue
        for block in message["content"]:
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result" and block["tool_use_id"] in calls:
                call = calls[block["tool_use_id"]]
                text = "\n".join(_texts(block.get("content") or ""))
                found.append(_Result(call["name"], object_or_empty(call["input"]), text))
    return found

"""Owns what a request shows: the tools offered, what was asked in this turn, and what tools returned so far."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from deploy.rehearsal.loose import Json, object_or_empty

# What a tool is for, told by how its name ends; the first property found is the one to fill.
ROLES: Final = {
    "list": ("list_files", "list_directory", "list_dir", "ls"),
    "read": ("read_file", "read_text_file", "cat"),
    "search": ("search_files", "grep", "search"),
    "log": ("git_log",),
    "delegate": ("delegate_task",),
    "page": ("read_artifact",),
}
PATHS: Final = ("path", "file_path", "file", "filename", "directory", "folder")
HANDLES: Final = ("handle",)
LEFT_OUT: Final = re.compile(r"^\[.*\bread_artifact (?P<handle>\S+) shows it again\b")
"""What stands for a result that was taken out of the prompt."""
PATTERNS: Final = ("pattern", "query", "regex")


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    properties: Json

    def argument(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if name in self.properties), None)


@dataclass(frozen=True, slots=True)
class Ran:
    """A call and what came of it; `step` counts from the turn's start."""

    role: str | None
    name: str
    input: Json
    text: str
    is_error: bool
    step: int

    @property
    def left_out(self) -> str | None:
        """The handle of a result that the request no longer shows, and that was not paged back since."""
        found = LEFT_OUT.match(self.text)
        return None if found is None else found["handle"]

    @property
    def path(self) -> str:
        found = next((self.input[name] for name in PATHS if isinstance(self.input.get(name), str)), ".")
        return normal(found)


@dataclass(frozen=True, slots=True)
class View:
    tools: dict[str, Tool]
    asked: str
    ran: tuple[Ran, ...]
    earlier: tuple[Ran, ...]
    steps: int
    turns: int
    # The turn begins right behind results: the person broke in, and what was seen before still counts.
    broke_in: bool


def normal(path: str) -> str:
    """A path without `./` in front and `/` behind; `.` is the workspace."""
    while path.startswith("./"):
        path = path[2:]
    return path.rstrip("/") or "."


def view(request: Json) -> View:
    """What the request shows. A turn begins with the last message of the person that carries no result."""
    messages: list[Json] = request["messages"]
    start = max((at for at, message in enumerate(messages) if _begins_turn(message)), default=0)
    results = {block["tool_use_id"]: block for message in messages for block in _blocks(message, "tool_result")}
    back = {
        ran.input.get("handle"): ran for message in messages for ran in _ran(message, results, {}, 0) if _paged(ran)
    }
    earlier = tuple(ran for message in messages[:start] for ran in _ran(message, results, back, 0))
    ran: list[Ran] = []
    steps = 0
    for message in messages[start:]:
        found = list(_ran(message, results, back, steps))
        steps += bool(found)
        ran += found
    texts = [text for message in messages[start:] if message["role"] == "user" for text in texts_of(message["content"])]
    choice = object_or_empty(request.get("tool_choice")).get("type")
    return View(
        tools={} if choice == "none" else _offered(request.get("tools") or []),
        asked="\n".join(texts),
        ran=tuple(ran),
        earlier=earlier,
        steps=steps,
        turns=sum(_begins_turn(message) for message in messages),
        broke_in=start > 0 and any(True for _ in _blocks(messages[start - 1], "tool_result")),
    )


def role_of(name: str) -> str | None:
    return next(
        (role for role, ends in ROLES.items() for end in ends if name == end or name.endswith(f"__{end}")), None
    )


def texts_of(content: Any) -> Iterator[str]:
    """The texts of a message's content, results of tools left aside."""
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block["type"] == "text":
            yield block["text"]


def _begins_turn(message: Json) -> bool:
    return message["role"] == "user" and not any(True for _ in _blocks(message, "tool_result"))


def _blocks(message: Json, kind: str) -> Iterator[Json]:
    if not isinstance(message["content"], str):
        yield from (block for block in message["content"] if block["type"] == kind)


def _offered(tools: list[Json]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        role = role_of(tool["name"])
        if role is not None:
            properties = object_or_empty(object_or_empty(tool.get("input_schema")).get("properties"))
            found.setdefault(role, Tool(tool["name"], properties))
    return found


def _paged(ran: Ran) -> bool:
    return ran.role == "page" and not ran.is_error and ran.left_out is None


def _ran(message: Json, results: dict[str, Json], back: dict[Any, Ran], step: int) -> Iterator[Ran]:
    """The calls of a message that have results. One that was left out and paged back shows what came back."""
    for call in _blocks(message, "tool_use"):
        result = results.get(call["id"])
        if result is not None:
            text = _result_text(result.get("content") or "")
            ran = Ran(role_of(call["name"]), call["name"], call["input"], text, bool(result.get("is_error")), step)
            paged = back.get(ran.left_out)
            yield ran if paged is None else replace(ran, text=paged.text)


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")

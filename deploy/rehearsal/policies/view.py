"""Owns what a request shows: the tools offered, what was asked in this turn, and what tools returned so far."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from deploy.rehearsal.loose import Json, object_or_empty

# What a tool is for, told by how its name ends; the first property found is the one to fill.
ROLES: Final = {
    "list": ("list_files", "list_directory", "list_dir", "ls"),
    "read": ("read_file", "read_text_file", "cat"),
    "search": ("search_files", "grep", "search"),
    "log": ("git_log",),
    "delegate": ("delegate_task",),
}
PATHS: Final = ("path", "file_path", "file", "filename", "directory", "folder")
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
    earlier = tuple(ran for message in messages[:start] for ran in _ran(message, results, 0))
    ran: list[Ran] = []
    steps = 0
    for message in messages[start:]:
        found = list(_ran(message, results, steps))
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


def _ran(message: Json, results: dict[str, Json], step: int) -> Iterator[Ran]:
    for call in _blocks(message, "tool_use"):
        result = results.get(call["id"])
        if result is not None:
            text = _result_text(result.get("content") or "")
            yield Ran(role_of(call["name"]), call["name"], call["input"], text, bool(result.get("is_error")), step)


def _result_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")

"""All tools by name, and the schema text that goes to the model: the same bytes for the same names, always."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from shared.request import canonical
from workers.tools import (
    clarify,
    delegate_task,
    git_log,
    list_files,
    memory,
    patch,
    read_artifact,
    read_file,
    run_code,
    schedule_job,
    search_files,
    send_message,
    session_search,
    skills,
    terminal,
    todo,
    web_fetch,
    web_search,
    write_file,
)
from workers.tools.tool import Tool

_ALL = {
    module.TOOL.name: module.TOOL
    for module in (
        clarify,
        delegate_task,
        git_log,
        list_files,
        memory,
        patch,
        read_artifact,
        read_file,
        run_code,
        schedule_job,
        search_files,
        send_message,
        session_search,
        skills,
        terminal,
        todo,
        web_fetch,
        web_search,
        write_file,
    )
}
TOOLS: Mapping[str, Tool] = MappingProxyType(_ALL)


def add(tool: Tool) -> None:
    """Have one more, in a process that brings tools of its own (the drill's workers), before its first turn."""
    if tool.name in _ALL:
        raise ValueError(f"there is a tool {tool.name} already")
    _ALL[tool.name] = tool


def carry(prefix: str, tools: Iterable[Tool]) -> None:
    """Have these, and no others whose name begins so: the tools of a server as they are now. No session that stands is
    offered them before its next epoch."""
    names = {tool.name: tool for tool in tools}
    _ALL.update(names)
    for name in [name for name in tuple(_ALL) if name.startswith(prefix) and name not in names]:
        del _ALL[name]


FORMER: Mapping[str, str] = MappingProxyType({"ask_person": "clarify", "skill_view": "skills"})
"""What a tool was called when the prompt of an old conversation was made. That prompt stands until its next epoch, and
runs of it may be open, so its calls are taken under the name that the tool has now. Nothing is offered under an old
name, and no setting knows one."""


def current(name: str) -> str:
    """The name by which a call is known here, whatever prompt it was made from."""
    return FORMER.get(name, name)


def schema_text(names: Iterable[str]) -> str:
    """The canonical JSON array of these tools, sorted by name. An unknown name is a KeyError: profiles are checked."""
    chosen = [TOOLS[name] for name in sorted(set(names))]
    return canonical.dump(
        [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in chosen]
    )


__all__ = ["FORMER", "TOOLS", "Tool", "current", "schema_text"]

"""All tools by name, and the schema text that goes to the model: the same bytes for the same names, always."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from shared.request import canonical
from workers.tools import ask_person, delegate_task, git_log, list_files, read_file, search_files, todo, write_file
from workers.tools.tool import Tool

TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        tool.name: tool
        for tool in sorted(
            (
                module.TOOL
                for module in (
                    ask_person,
                    delegate_task,
                    git_log,
                    list_files,
                    read_file,
                    search_files,
                    todo,
                    write_file,
                )
            ),
            key=lambda tool: tool.name,
        )
    }
)


def schema_text(names: Iterable[str]) -> str:
    """The canonical JSON array of these tools, sorted by name. An unknown name is a KeyError: profiles are checked."""
    chosen = [TOOLS[name] for name in sorted(set(names))]
    return canonical.dump(
        [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in chosen]
    )


__all__ = ["TOOLS", "Tool", "schema_text"]

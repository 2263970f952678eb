"""What the code of a run may ask of its session: which tools, decided when the run begins."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from shared.values import Repeat
from workers.tools import dispatch
from workers.tools.context import MayRead, ToolContext, ToolResult
from workers.tools.registry import TOOLS

BY_CODE = frozenset({"git_log", "list_files", "read_artifact", "read_file", "search_files", "session_search"})


def may_read(tools: Collection[str], asked_about: Collection[str], stopped: Collection[str]) -> MayRead:
    """Of the session's `tools` those that only read. One that a person must allow, or that an admin has stopped, is
    not to be had by a detour either. What an answer costs of the window is counted when the code prints it."""
    names = sorted(BY_CODE & {*tools} - {*asked_about} - {*stopped})
    readers = [name for name in names if TOOLS[name].repeat is Repeat.REPEATABLE]

    def ask(context: ToolContext, name: str, arguments: str) -> ToolResult:
        return dispatch.run_one(context, name, arguments, readers)

    return MayRead({name: _parameters(name) for name in readers}, ask)


def _parameters(name: str) -> Sequence[str]:
    properties = TOOLS[name].schema.get("properties")
    return tuple(cast("Mapping[str, object]", properties)) if isinstance(properties, Mapping) else ()

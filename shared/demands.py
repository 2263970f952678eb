"""Which tools a person must allow, as `NIGHTSHIFT_APPROVE_TOOLS` says it. Pure; read by every process that starts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shared import mcp
from shared.errors import SettingsError
from shared.values import Role

NAME = "NIGHTSHIFT_APPROVE_TOOLS"
TOOLS = frozenset(
    {
        "clarify", "delegate_task", "git_log", "list_files", "memory", "patch", "read_artifact", "read_file",
        "run_code", "schedule_job", "search_files", "send_message", "session_search", "skills", "terminal", "todo",
        "web_fetch", "web_search", "write_file",
    }
)  # fmt: skip
"""The tools that a worker carries, for those that may not import them. A test holds it against the registry."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Who may decide on a call of this tool; with `four_eyes` not the one who asked for the turn."""

    role: Role
    four_eyes: bool


def parse(setting: str, known: Collection[str] | None = None) -> dict[str, Demand]:
    """Names with commas between, each `tool`, `tool:role` or `tool:role:four_eyes`; of the tools in `known`, where
    given. Raises SettingsError that names the setting and what is wrong in it."""
    found: dict[str, Demand] = {}
    for part in filter(None, (word.strip() for word in setting.split(","))):
        name, _, rest = part.partition(":")
        role, _, eyes = rest.partition(":")
        if known is not None and name not in known and not name.startswith(mcp.PREFIX):  # a server may come later
            raise SettingsError(f"{NAME}: there is no tool '{name}'; tools: {', '.join(sorted(known))}")
        if eyes not in ("", "four_eyes"):
            raise SettingsError(f"{NAME}: '{eyes}' is not 'four_eyes' ({part})")
        if name in found:
            raise SettingsError(f"{NAME}: '{name}' is named twice")
        try:
            found[name] = Demand(Role(role or Role.APPROVER), four_eyes=bool(eyes))
        except ValueError as error:
            raise SettingsError(f"{NAME}: '{role}' is not a role; roles: {', '.join(Role)}") from error
    return found

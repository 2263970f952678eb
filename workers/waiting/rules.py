"""Which runs need somebody else, by the tool's own word and by what the settings demand. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.errors import SettingsError
from shared.values import Role
from workers.tools import registry
from workers.tools.tool import Waits


@dataclass(frozen=True, slots=True)
class Demand:
    """Who may decide on a call of this tool; with `four_eyes` not the one who asked for the turn."""

    role: Role
    four_eyes: bool


def demands(setting: str) -> dict[str, Demand]:
    """`NIGHTSHIFT_APPROVE_TOOLS`: names with commas between, each `tool`, `tool:role` or `tool:role:four_eyes`.

    Raises SettingsError that names what is wrong.
    """
    found: dict[str, Demand] = {}
    for part in filter(None, (word.strip() for word in setting.split(","))):
        name, _, rest = part.partition(":")
        role, _, eyes = rest.partition(":")
        if name not in registry.TOOLS:
            raise SettingsError(f"NIGHTSHIFT_APPROVE_TOOLS: there is no tool '{name}'")
        if eyes not in ("", "four_eyes"):
            raise SettingsError(f"NIGHTSHIFT_APPROVE_TOOLS: '{eyes}' is not 'four_eyes' ({part})")
        try:
            found[name] = Demand(Role(role or Role.APPROVER), four_eyes=bool(eyes))
        except ValueError as error:
            roles = ", ".join(Role)
            raise SettingsError(f"NIGHTSHIFT_APPROVE_TOOLS: '{role}' is not a role; roles: {roles}") from error
    return found


def waits_of(name: str) -> Waits | None:
    """Whether a call of this tool is answered by somebody else; None where it runs here, or is no tool at all."""
    tool = registry.TOOLS.get(name)
    return None if tool is None else tool.waits


def needs_somebody(names: Sequence[str], demanded: dict[str, Demand]) -> bool:
    return any(name in demanded or waits_of(name) is not None for name in names)

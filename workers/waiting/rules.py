"""Which runs need somebody else, by the tool's own word and by what the settings demand. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shared.demands import Demand, parse
from workers.tools import registry
from workers.tools.tool import Waits


def demands(setting: str) -> dict[str, Demand]:
    """`NIGHTSHIFT_APPROVE_TOOLS` against the tools that there are. Raises SettingsError that names what is wrong."""
    return parse(setting, registry.TOOLS)


def waits_of(name: str) -> Waits | None:
    """Whether a call of this tool is answered by somebody else; None where it runs here, or is no tool at all."""
    tool = registry.TOOLS.get(name)
    return None if tool is None else tool.waits


def needs_somebody(names: Sequence[str], demanded: dict[str, Demand]) -> bool:
    return any(name in demanded or waits_of(name) is not None for name in names)

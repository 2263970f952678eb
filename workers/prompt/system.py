"""Builds the system prompt once a session: three tiers in fixed order, as text that is stored and sent as it is ever
after."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from shared.request import blocks
from shared.text import clean_text
from workers.prompt import context_file, stable
from workers.tools import registry

ALL_TOOLS = tuple(registry.TOOLS)


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """`started` is when the conversation began, never the time of the build. `identity` and `caller_text` come from
    the profile and the caller; `attached` only says whether there is an input/ folder: no path of a host enters the
    prompt."""

    session: str
    model: str
    provider: str
    started: datetime
    zone: str
    workspace: Path
    attached: Path | None = None
    identity: str = ""
    caller_text: str = ""
    tools: tuple[str, ...] = ALL_TOOLS


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """`system_text` is the array of system blocks, one a tier that is not empty; the lengths are characters of the
    tiers' texts."""

    system_text: str
    stable_length: int
    context_length: int


def build(inputs: PromptInputs) -> SystemPrompt:
    """The prompt for a session that has none. Reads the workspace's context file; raises ValueError when `started`
    has no zone."""
    first = clean_text(stable.text(inputs.identity, inputs.tools))
    second = clean_text(_context(inputs))
    tiers = (first, second, clean_text(_volatile(inputs)))
    return SystemPrompt(blocks.join(blocks.text(tier) for tier in tiers if tier), len(first), len(second))


def start_date(started: datetime, zone: str) -> str:
    """The day on which the conversation began where the team is. A clock in the prompt would change the prefix at
    every build."""
    if started.tzinfo is None:
        raise ValueError("the start of a conversation must carry its zone")
    return started.astimezone(ZoneInfo(zone)).strftime("%A, %Y-%m-%d")


def _context(inputs: PromptInputs) -> str:
    parts: list[str] = []
    if inputs.caller_text.strip():
        parts.append(inputs.caller_text.strip())
    if inputs.attached is not None and inputs.tools:
        parts.append("For this session a folder is attached at input/; it is the material of the work.")
    file = context_file.find(inputs.workspace)
    if file is not None:
        parts.append(context_file.as_data(file))
    return "\n\n".join(parts)


def _volatile(inputs: PromptInputs) -> str:
    day = start_date(inputs.started, inputs.zone)
    return (
        f"Session {inputs.session} on {inputs.model} ({inputs.provider}); the conversation started on {day} "
        f"({inputs.zone}). Later messages may be of later days: go by the dates in them."
    )

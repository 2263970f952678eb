"""Builds the system prompt once a session: three tiers in fixed order, as text that is stored and sent as it is ever
after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from shared.memory import Head, Kind
from shared.request import blocks
from shared.text import clean_text
from workers.prompt import context_file, remembered, skills, stable
from workers.prompt.data import LeftOut
from workers.tools import registry

ALL_TOOLS = tuple(registry.TOOLS)
SKILL_TOOL = "skills"


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """`started` is when the conversation began, never the time of the build. `identity` and `caller_text` come from
    the profile and the caller; `attached` only says whether there is an input/ folder: no path of a host enters the
    prompt. `memory` are the scopes whose readers are this conversation's, as they are now, with how much each may
    hold; `skills` is the folder of skills."""

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
    memory: tuple[Head, ...] = ()
    limits: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    skills: Path | None = None


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """`system_text` is the array of system blocks, one a tier that is not empty; the lengths are characters of the
    tiers' texts. `left_out` is what reads like an instruction and is therefore not in it."""

    system_text: str
    stable_length: int
    context_length: int
    left_out: tuple[LeftOut, ...] = ()


def build(inputs: PromptInputs) -> SystemPrompt:
    """The prompt as it would be made now. Reads the workspace's context file and the index of skills; raises
    ValueError when `started` has no zone."""
    first = clean_text(stable.text(inputs.identity, inputs.tools))
    context, of_context = _context(inputs)
    volatile, of_volatile = _volatile(inputs)
    tiers = (first, clean_text(context), clean_text(volatile))
    text = blocks.join(blocks.text(tier) for tier in tiers if tier)
    return SystemPrompt(text, len(first), len(tiers[1]), of_context + of_volatile)


def start_date(started: datetime, zone: str) -> str:
    """The day on which the conversation began where the team is. A clock in the prompt would change the prefix at
    every build."""
    if started.tzinfo is None:
        raise ValueError("the start of a conversation must carry its zone")
    return started.astimezone(ZoneInfo(zone)).strftime("%A, %Y-%m-%d")


def _context(inputs: PromptInputs) -> tuple[str, tuple[LeftOut, ...]]:
    parts: list[str] = []
    if inputs.caller_text.strip():
        parts.append(inputs.caller_text.strip())
    if inputs.attached is not None and inputs.tools:
        parts.append("For this session a folder is attached at input/; it is the material of the work.")
    file = context_file.find(inputs.workspace)
    if file is not None:
        parts.append(context_file.as_data(file))
    return "\n\n".join(parts), () if file is None else file.left_out


def _volatile(inputs: PromptInputs) -> tuple[str, tuple[LeftOut, ...]]:
    """What may differ from one conversation to the next: skills, memory, profile, and the line that names it."""
    shown = inputs.skills is not None and SKILL_TOOL in inputs.tools
    listed, of_skills = skills.text(inputs.skills) if shown and inputs.skills else ("", ())
    known, of_memory = remembered.text(inputs.memory, inputs.limits)
    day = start_date(inputs.started, inputs.zone)
    line = (
        f"Session {inputs.session} on {inputs.model} ({inputs.provider}); the conversation started on {day} "
        f"({inputs.zone}). Later messages may be of later days: go by the dates in them."
    )
    return "\n\n".join(part for part in (listed, known, line) if part), of_skills + of_memory

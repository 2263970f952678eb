"""The first input of a job's run: the scaffold, the same to the byte each time, then a tail that names the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from shared.request import blocks
from shared.text import clean_text


@dataclass(frozen=True, slots=True)
class JobPrompt:
    """`payload` is a JSON array of one text block; its first `stable_prefix_len` characters are the scaffold."""

    payload: str
    stable_prefix_len: int


def build(*, prompt: str, tail: str, name: str, run: UUID, instant: datetime, zone: str, manual: bool) -> JobPrompt:
    """Nothing that differs between two runs stands in front of the scaffold's end: it is what their cache shares."""
    scaffold = clean_text(prompt)
    local = instant.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes")
    asked = "asked for by hand at" if manual else "due at"
    when = f"{asked} {local} ({zone}; {instant.astimezone(UTC):%Y-%m-%dT%H:%MZ})"
    about = f"This is run {run} of the job \u201c{clean_text(name)}\u201d, {when}."
    lines = ["", "", *([clean_text(tail), ""] if tail.strip() else []), about]
    return JobPrompt(blocks.join([blocks.text(scaffold + "\n".join(lines))]), len(scaffold))

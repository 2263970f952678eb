"""Under which rules a call is judged: whose it is, what stands in for approval, what was granted."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Mode(StrEnum):
    """What comes of a call that needs a person."""

    ASK = "ask"
    DENY = "deny"
    PARK = "park"  # of a job: it waits in the team's inbox until somebody is there; never an automatic yes


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose call it is. A border that hands none on leads to a refusal."""

    principal: str
    session: str


@dataclass(frozen=True, slots=True)
class Policy:
    """`isolated`: the tool runs where nothing of the host is mounted, which stands in for approval. `denied` are
    commands by their first words, `allowed` likewise; `granted` are patterns that a person allowed for this principal.
    `patterns_off`: the bypass of the launch, or one that a role opened for this session and a time."""

    mode: Mode = Mode.ASK
    isolated: bool = False
    denied: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    granted: frozenset[str] = field(default_factory=frozenset[str])
    patterns_off: bool = False

"""The one transition table of a turn: which change is legal, and who may make it.

The database repeats it as a trigger (built from this table by the migration's text, compared by a test), and the
README's diagram is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.values import TurnStatus as S


class Actor(StrEnum):
    HOLDER = "holder"  # carries the fence
    CLAIM = "claim"
    API = "api"
    SWEEP = "sweep"
    CHILD = "child"


@dataclass(frozen=True, slots=True)
class Transition:
    source: S
    target: S
    name: str
    actors: frozenset[Actor]


def _t(source: S, target: S, name: str, *actors: Actor) -> Transition:
    return Transition(source, target, name, frozenset(actors))


TRANSITIONS: tuple[Transition, ...] = (
    _t(S.QUEUED, S.RUNNING, "claim", Actor.CLAIM),
    _t(S.QUEUED, S.CANCELLED, "cancel", Actor.API),
    _t(S.QUEUED, S.FAILED, "expire", Actor.SWEEP),
    _t(S.RUNNING, S.DONE, "finish", Actor.HOLDER),
    _t(S.RUNNING, S.FAILED, "fail", Actor.HOLDER, Actor.SWEEP),
    _t(S.RUNNING, S.CANCELLED, "cancel", Actor.HOLDER, Actor.SWEEP),
    _t(S.RUNNING, S.PARKED, "park", Actor.HOLDER),
    _t(S.RUNNING, S.QUEUED, "requeue", Actor.HOLDER, Actor.SWEEP),
    _t(S.PARKED, S.QUEUED, "wake", Actor.API, Actor.CHILD, Actor.SWEEP),
    _t(S.PARKED, S.CANCELLED, "cancel", Actor.API),
    _t(S.PARKED, S.FAILED, "expire", Actor.SWEEP),
)

LEGAL: frozenset[tuple[S, S]] = frozenset((t.source, t.target) for t in TRANSITIONS)


def may(actor: Actor, source: S, target: S) -> bool:
    """Whether `actor` may move a turn from `source` to `target`."""
    return any(t.source is source and t.target is target and actor in t.actors for t in TRANSITIONS)


def diagram() -> str:
    """The Mermaid state diagram that the README shows; a test compares the two."""
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    lines += [f"    {t.source} --> {t.target}: {t.name} ({', '.join(sorted(t.actors))})" for t in TRANSITIONS]
    lines += [f"    {s} --> [*]" for s in (S.DONE, S.FAILED, S.CANCELLED)]
    return "\n".join(lines)

"""What is decided of a tool call, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    """From lenient to strict."""

    ALLOW = "allow"
    ASK = "ask"  # a person decides; a grant may cover it
    ASK_PERSON = "ask_person"  # a person decides each time, whatever was granted
    REFUSE = "refuse"


_RANK = {decision: rank for rank, decision in enumerate(Decision)}


@dataclass(frozen=True, slots=True)
class Hit:
    """One rule that a call meets. `rule` is its stable name, `why` a sentence's end for a person, `what` the words of
    the call that meet it."""

    rule: str
    decision: Decision
    why: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rule` decided; `hits` are all that were met, `understood` the programs that would start, in order. `patterns`
    are what a grant must cover, each, for an `ask` to become an `allow`; none where no grant can."""

    decision: Decision
    rule: str
    why: str
    understood: tuple[str, ...] = ()
    hits: tuple[Hit, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        return self.decision in (Decision.ASK, Decision.ASK_PERSON)


def strictest(hits: tuple[Hit, ...]) -> Hit | None:
    """The first of the strictest."""
    return max(hits, key=lambda hit: _RANK[hit.decision], default=None)

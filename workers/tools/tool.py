"""What a tool is: its name and schema as the model sees them, how it may be repeated, and the function behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shared.settings import Settings
from shared.values import Repeat
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.touching import Touch

RUN_S = 120.0
"""How long one run may take where its tool says nothing else."""


class Waits(StrEnum):
    """Who answers a call that no process of ours can: the turn parks until they have."""

    PERSON = "person"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class Happened:
    """It did: `result` is what the run would have given."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """There is no trace of it. Believed only once the run's time is over: until then it may still happen."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """`why` is a few words for the model."""

    why: str


Checked = Happened | DidNotHappen | CannotTell


@dataclass(frozen=True, slots=True)
class Check:
    """A read that tells whether a run happened whose worker was lost. `name` is what the model and people call it;
    `ask` changes nothing, ends by `context.deadline`, and may raise: then nobody can tell."""

    name: str
    ask: Callable[[ToolContext, Arguments], Checked]


@dataclass(frozen=True, slots=True)
class Tool:
    """`run` gets arguments that fit `schema`; of a text longer than `cap_chars` the model sees a
    preview, and reads the rest by a handle (workers/spill.py).

    `repeat` says what the next holder does with a run that was lost while it ran. A keyed tool gives `context.key` to
    its far side, which has each key's effect once; a checkable one has a `check`. `look` tells the model how to find
    out for itself where the outcome is unknown.
    Where `waits` is set, `run` is never called: the call's answer comes from rows (workers/waiting).
    `touches` says what a call with these arguments reads and writes; without it, or with None as its answer, nobody
    can tell, and the call runs alone. `lacks` is asked before a session gets its tools and says in a few words what
    this host or its settings lack for this one; None where it can be offered. It may take seconds and may raise, which
    is a lack too (workers/tools/availability.py).
    """

    name: str
    description: str
    schema: Mapping[str, object]
    repeat: Repeat
    run: Callable[[ToolContext, Arguments], ToolResult]
    cap_chars: int
    waits: Waits | None = None
    check: Check | None = None
    look: str | None = None
    touches: Callable[[Arguments], Touch | None] | None = None
    lacks: Callable[[Settings], str | None] | None = None
    foreign: bool = False
    """Whether a result may hold what strangers wrote and is not enclosed by the tool itself: where it reads like an
    instruction, a warning stands above it."""
    ours: bool = True
    """Whether `schema` was written here. Of another only that the arguments are an object is checked: who wrote it
    judges the rest."""
    run_s: float = RUN_S
    """How long a run may take and, where it may not simply be repeated, until when it acts after it was `started`."""

    def __post_init__(self) -> None:
        if (self.repeat is Repeat.CHECKABLE) is not (self.check is not None):
            raise ValueError(f"{self.name}: a tool has a check if it is checkable, and only then")


def text(arguments: Arguments, key: str, default: str) -> str:
    value = arguments.get(key, default)
    assert isinstance(value, str)
    return value


def integer(arguments: Arguments, key: str, default: int) -> int:
    value = arguments.get(key, default)
    assert isinstance(value, int)
    return value


def flag(arguments: Arguments, key: str) -> bool:
    return arguments.get(key) is True


def never_runs(context: ToolContext, arguments: Arguments) -> ToolResult:
    """Of a tool that waits. Its answer comes from rows; that it is called at all is a fault of the loop."""
    raise RuntimeError(f"a tool that waits was run (step {context.step}, {len(arguments)} arguments)")

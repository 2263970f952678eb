"""One compaction, from the decision to the edit: may it be tried, what it covers, the summariser's call, the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workers.held import Held
from workers.ports import Ports

ASKED = "asked"
"""The cause of a compaction that a person wants: the breaker stops only what nobody asked for."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A summary stands for messages `first`..`last`. `fallback` is None where the model wrote it, else why it did not
    (a code of `checks` or of the wire, "lost", a cap). Tokens are of the whole prompt: before as projected, after as
    estimated."""

    edit: int
    first: int
    last: int
    tokens_before: int
    tokens_after: int
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The middle was too small to be worth a call. `edit` is None where nothing could be left out at all, else the
    edit that dropped it without the model. A verdict is due either way."""

    reason: str
    edit: int | None = None
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class Blocked:
    """The breaker is shut: nothing was tried. `message` is a sentence for the person: why, until when, what to do."""

    until: datetime
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was edited, because the turn has to stop (`code` is the reason of the interrupt): look at
    `held.interrupted()`. A summariser that fails is no such case; it is `Compacted` with its `fallback`."""

    code: str
    message: str


def compact(
    ports: Ports, held: Held, cause: str, arithmetic: Mapping[str, object] | None = None
) -> Compacted | Skipped | Blocked | Failed:
    """Let a summary stand for the middle of the conversation. Raises LeaseLost.

    What was gathered must be committed before (`reserving.commit_rows`): only then are the newest calls answered in
    what the summariser reads. `cause` is a word of the decision ("meter", "threshold", "overflow", "cold", "asked");
    `arithmetic` goes into `reductions` and the event `context.reduced`, as JSON.

    Afterwards the holder's memory of the request is gone where anything was edited, as after `prefixing.begin_epoch`,
    and `held.context` is what the row has.
    """
    raise NotImplementedError

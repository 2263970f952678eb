"""How much one batch of tool runs may put into the conversation. Pure: sizes in, a decision out.

A reply may ask for a thousand reads at once; results that do not fit the window would fail that turn and every later
one, since what is in the transcript stays there.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.request import estimate
from shared.text import bounded

MOST_RUNS = 128
SHARE = 0.6
"""Of the room that is left in the window: the answer and the next steps need the rest."""
TOO_MANY = f"not run: one reply may ask for {MOST_RUNS} calls; ask for the rest in the next one"
NO_ROOM = "not run: the results before it already fill what the conversation can take; ask for less, or for parts"
LEAST_TOKENS = 200


@dataclass(slots=True)
class Room:
    """Tokens that the results of this batch may still take, as `model` counts them."""

    model: str
    tokens: float
    runs: int = 0

    @property
    def for_children(self) -> float:
        """What summaries of children may take together: half of what the window has left (issue "Delegation")."""
        return self.tokens / SHARE / 2

    def refusal(self) -> str | None:
        """Why the next run is not to be run; None where it may. Counts it."""
        self.runs += 1
        if self.runs > MOST_RUNS:
            return TOO_MANY
        return NO_ROOM if self.tokens < LEAST_TOKENS else None

    def take(self, text: str) -> str:
        """The result as it may stand: whole, or its beginning with a note of how much was left out."""
        size = estimate.estimate_text(text, self.model)
        if size > self.tokens:
            text = bounded(text, max(200, int(len(text) * self.tokens / size)))
            size = estimate.estimate_text(text, self.model)
        self.tokens -= size
        return text


def room(model: str, window: int, used: int) -> Room:
    """What a batch may take in a window of which so much is used already."""
    return Room(model, max(0.0, (window - used) * SHARE))

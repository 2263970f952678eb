"""How much one batch of tool runs may put into the conversation. Pure: sizes in, a decision out.

A reply may ask for a thousand reads at once; results that do not fit the window would fail that turn and every later
one, since what is in the transcript stays there. A result that is too long is kept whole elsewhere (spill.py): so what
a run needs at least is the preview of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.request import estimate
from workers import spill
from workers.tools.context import ToolResult

MOST_RUNS = 128
SHARE = 0.6
"""Of the room that is left in the window: the answer and the next steps need the rest."""
TOO_MANY = f"not run: one reply may ask for {MOST_RUNS} calls; ask for the rest in the next one"
NO_ROOM = "not run: the results before it already fill what the conversation can take; ask for less, or for parts"
LEAST_TOKENS = 200


@dataclass(slots=True)
class Room:
    """Tokens that the results of this batch may take together, as `model` counts them; `taken` is what those so far
    need at least."""

    model: str
    tokens: float
    window: int
    runs: int = 0
    taken: float = 0.0

    @property
    def for_children(self) -> float:
        """What summaries of children may take together: half of what the window has left (issue "Delegation")."""
        return self.tokens / SHARE / 2

    @property
    def budget(self) -> spill.Budget:
        return spill.budget(self.model, self.window, self.tokens)

    def refusal(self) -> str | None:
        """Why the next run is not to be run; None where it may. Counts it."""
        self.runs += 1
        if self.runs > MOST_RUNS:
            return TOO_MANY
        return NO_ROOM if self.tokens - self.taken < LEAST_TOKENS else None

    def count(self, text: str, *, whole: bool = False) -> None:
        """A result; unless it is to stand `whole`, it may be kept elsewhere, should it be long."""
        self.taken += estimate.estimate_text(text if whole else text[: 2 * spill.PREVIEW], self.model)

    def page(self, result: ToolResult, shortened: Callable[[ToolResult, int], ToolResult]) -> ToolResult:
        """A page of what is kept, as long as it may be here; `shortened` to so many characters by the tool that made
        it. Counted whole."""
        left = max(LEAST_TOKENS, self.tokens - self.taken)
        chars = len(result.text)
        while (size := estimate.estimate_text(result.text, self.model)) > left and chars > spill.SHORTEST:
            chars = max(spill.SHORTEST, min(int(chars * 0.9), int(chars * left / size)))
            result = shortened(result, chars)
        self.taken += size
        return result


def room(model: str, window: int, used: int) -> Room:
    """What a batch may take in a window of which so much is used already."""
    return Room(model, max(0.0, (window - used) * SHARE), window)

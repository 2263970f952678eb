"""The instruction of the last call of a turn, which has no tools: say what was found, and what was not done, and
why."""

from __future__ import annotations

from enum import StrEnum

from shared.request import blocks


class Cause(StrEnum):
    NO_TEXT = "no_text"
    STEPS = "steps"
    MONEY = "money"
    WINDOW = "window"
    TIME = "time"
    FAILING = "failing"
    STALE = "stale"


_BECAUSE = {
    Cause.NO_TEXT: "Your work ended without a written answer.",
    Cause.STEPS: "All steps of this turn are used.",
    Cause.MONEY: "The money for this turn is used up.",
    Cause.WINDOW: "The context window is full.",
    Cause.TIME: "The time for this turn is over.",
    Cause.FAILING: "The same call has failed the same way again and again.",
    Cause.STALE: "Call after call brought nothing that was not known.",
}


_ACCOUNT = (
    "Begin with an account of it: which call it was, what it was to bring, what came each time, and what you take that "
    "to mean. "
)


def instruction(cause: Cause) -> str:
    account = _ACCOUNT if cause in (Cause.FAILING, Cause.STALE) else ""
    return (
        f"[Nightshift: {_BECAUSE[cause]} There are no tools any more; your next message is the last of the turn.] "
        f"{account}Write the answer to the request now, from what you have found so far, with its sources. "
        "Then say in a few lines what is unfinished or unchecked, and what the next step would be. "
        "Claim nothing that you did not do."
    )


def tail(cause: Cause) -> str:
    """The array of blocks that the call ends with and its row keeps (`calls.tail`)."""
    return blocks.join([blocks.text(instruction(cause))])

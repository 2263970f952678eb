"""What the person of a turn is answered with: the text of the reply that ended it, and that it was cut where it was.

The note stands in the turn's answer, and so wherever that goes: a parent, a brief, a screen. The transcript has what
the model wrote, no more.
"""

from __future__ import annotations

OUTPUT_FULL = "max_tokens"
"""The wire's word for a reply that was ended because it had reached the most that its call might write."""
CUT = (
    "[Nightshift: this answer was cut here, for it had reached the most that one reply may be long. "
    "Ask for the rest, or for a shorter answer.]"
)


def answer(text: str, stop_reason: str | None) -> str:
    return f"{text.rstrip()}\n\n{CUT}" if stop_reason == OUTPUT_FULL else text

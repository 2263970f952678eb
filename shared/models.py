"""Owns what each model can hold. Invariant: a model that is not in the table gets small limits that say so."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens. `window` holds prompt and output together; `known` is False where both are only the safe guess."""

    window: int
    max_output: int
    known: bool


UNKNOWN = Limits(200_000, 8_192, known=False)
_LONG = Limits(1_000_000, 128_000, known=True)
_SHORT = Limits(200_000, 64_000, known=True)

TABLE: dict[str, Limits] = {
    "claude-fable-5-2": _LONG,
    "claude-mythos-5-2": _LONG,
    "claude-fable-5-1": _LONG,
    "claude-mythos-5-1": _LONG,
    "claude-opus-5-5": _LONG,
    "claude-sonnet-5-5": _LONG,
    "claude-haiku-5-5": _LONG,
    "claude-fable-5": _LONG,
    "claude-mythos-5": _LONG,
    "claude-opus-5": _LONG,
    "claude-opus-4-8": _LONG,
    "claude-opus-4-7": _LONG,
    "claude-opus-4-6": _LONG,
    "claude-sonnet-5": _LONG,
    "claude-sonnet-4-6": _LONG,
    "claude-opus-4-5": _SHORT,
    "claude-sonnet-4-5": _SHORT,
    "claude-haiku-4-5": _SHORT,
}
"""Source: the provider's model overview of November 2026."""

_DATE = re.compile(r"-\d{8}$")


def limits(model: str) -> Limits:
    """The limits of a model by its name, with or without the date of its snapshot."""
    return TABLE.get(_DATE.sub("", model.strip().lower()), UNKNOWN)


def window(model: str) -> int:
    return limits(model).window


def max_output(model: str) -> int:
    return limits(model).max_output


UNCALIBRATED, CALIBRATED = 0.75, 0.9
"""Of the usable input (economics.md "The trigger"): before the estimate was anchored on a bill, and from then on."""


def room(model: str, max_output_tokens: int, *, calibrated: bool, share: float | None = None) -> int:
    """The prompt, in tokens, at which the past of a conversation has to be made smaller: a share of the window without
    what one answer may take. `share` is what a person set (NIGHTSHIFT_CONTEXT_THRESHOLD), None for the two above."""
    known = limits(model)
    usable = known.window - min(max_output_tokens, known.max_output)
    return int(usable * (share or (CALIBRATED if calibrated else UNCALIBRATED)))

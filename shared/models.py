"""Owns what each model can hold. Invariant: a model that is not in the table gets small limits that say so."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens. `window` holds prompt and output together; `known` is False where both are only the safe guess. `source`:
    where the window is written."""

    window: int
    max_output: int
    known: bool
    source: str = field(default="catalogue", compare=False)


UNKNOWN = Limits(200_000, 8_192, known=False, source="a guess")
_LONG = Limits(1_000_000, 128_000, known=True)
_SHORT = Limits(200_000, 64_000, known=True)
_GPT = Limits(1_050_000, 128_000, known=True)
_GPT_SHORT = Limits(400_000, 128_000, known=True)

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
    **dict.fromkeys(("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-sol", "gpt-6-luna", "gpt-6-astra"), _GPT),
    **dict.fromkeys(("gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna", "gpt-5.4", "gpt-5.4-pro"), _GPT),
    **dict.fromkeys(("gpt-5.5", "gpt-5.5-pro"), Limits(1_000_000, 128_000, known=True)),
    **dict.fromkeys(("gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.2", "gpt-5.4-mini"), _GPT_SHORT),
    **dict.fromkeys(("deepseek-v4-pro", "deepseek-v4-flash"), Limits(1_000_000, 64_000, known=True)),
    "mistral-large-4": Limits(1_048_576, 32_000, known=True),
}
"""Source: the providers' model overviews of November 2026; of all but Anthropic's the windows are those of genai-prices
0.2.3, and what they can write is a cautious guess."""

_DATE = re.compile(r"-\d{8}$")
_BEDROCK = re.compile(r"^(?:.*[./])?(?:anthropic|openai)\.([a-z].*?)(?:-v\d+)?(?::\d+(?::\w+)?)?$")
"""Names there: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`: whence, the maker, the model, a version."""


def limits(model: str, *, told: int | None = None, otherwise: int | None = None) -> Limits:
    """The limits of a model by its name, with or without its maker's and the date of its snapshot. `told` is a window
    that whoever runs the model has set, and counts before the catalogue; `otherwise` one for what is not in it."""
    known = TABLE.get(_DATE.sub("", _BEDROCK.sub(r"\1", model.strip().lower())).rsplit("/", 1)[-1])
    if told is None and known is not None:
        return known
    window = told or otherwise
    if window is None:
        return UNKNOWN
    most = (known or UNKNOWN).max_output
    source = "NIGHTSHIFT_CONTEXT_WINDOW" if told is not None else "what is usual at the provider"
    return Limits(window, min(most, max(256, window // 4)), known=told is not None, source=source)


def window(model: str) -> int:
    return limits(model).window


def max_output(model: str) -> int:
    return limits(model).max_output


UNCALIBRATED, CALIBRATED = 0.75, 0.9
"""Of the usable input (economics.md "The trigger"): before the estimate was anchored on a bill, and from then on."""


def room(known: Limits, max_output_tokens: int, *, calibrated: bool, share: float | None = None) -> int:
    """The prompt, in tokens, at which the past of a conversation has to be made smaller: a share of the window without
    what one answer may take. `share` is what a person set (NIGHTSHIFT_CONTEXT_THRESHOLD), None for the two above."""
    usable = known.window - min(max_output_tokens, known.max_output)
    return int(usable * (share or (CALIBRATED if calibrated else UNCALIBRATED)))

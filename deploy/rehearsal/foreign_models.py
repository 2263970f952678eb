"""Owns the models of other makers, with the manners by which they break clients. Prices as published, November 2026."""

import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final

from deploy.rehearsal.models import MODELS, Model, Rates, rates


@dataclass(frozen=True, slots=True)
class Manners:
    """What a request must do here, and what a reply does, beyond what its wire says."""

    # Reasoning of an assistant message with calls must come back as this member.
    wants_reasoning: bool = False
    # Each first call of a reply is signed, in `extra_content`, on a trailing delta without index; it must come back.
    signs_calls: bool = False
    # Ids of calls are exactly nine letters and digits.
    nine_ids: bool = False
    # Refuses parameters that it does not know.
    strict: bool = False


def _model(name: str, window: int, given: float, output: float, read: float, write: float = 0) -> Model:
    return Model(
        name, name, "2026-10-01T00:00:00Z", window, 128_000, 1024, rates(given, output, read, write, write), 1.0, 0,
    )  # fmt: skip


_GPT_61: Final = Model(
    "gpt-6.1-sol", "gpt-6.1-sol", "2026-10-01T00:00:00Z", 1_050_000, 128_000, 1024, rates(2, 10, 0.1, 2.5, 2.5), 1.0, 0,
    cliff=(272_000, rates(4, 15, 0.2, 5, 5)),
)  # fmt: skip
_GPT_55: Final = Model(
    "gpt-5.5", "gpt-5.5", "2026-04-01T00:00:00Z", 1_000_000, 128_000, 1024, rates(5, 30, 0.5, 0, 0), 1.0, 0,
    cliff=(272_000, rates(10, 45, 1, 0, 0)),
)  # fmt: skip

FOREIGN: dict[str, Model] = {
    one.name: one
    for one in (
        _GPT_61,
        _GPT_55,
        _model("deepseek-v4-pro", 1_000_000, 0.66, 1.98, 0.022),
        _model("gemini-3.8-flash", 1_000_000, 0.75, 3.75, 0.075),
        _model("mistral-large-4", 1_048_576, 0.7, 2.1, 0.07),
        _model("smollm2", 4_096, 0, 0, 0),
    )
}

_BEDROCK: Final = re.compile(r"([a-z-]+\.)?anthropic\.(claude-[a-z0-9-]+?)(?:-\d{8})?(?:-v\d+)?(?::\d+)?")

MANNERS: dict[str, Manners] = {
    "deepseek-v4-pro": Manners(wants_reasoning=True),
    "gemini-3.8-flash": Manners(signs_calls=True),
    "mistral-large-4": Manners(nine_ids=True, strict=True),
}


def model_of(name: str) -> Model | None:
    """Claude too: routers speak chat completions for all, and Bedrock has it under names of its own."""
    return FOREIGN.get(name) or MODELS.get(name) or _of_bedrock(name)


@lru_cache(maxsize=256)
def _of_bedrock(name: str) -> Model | None:
    """`global.` costs what it costs at its maker's, a region a tenth more."""
    found = _BEDROCK.fullmatch(name)
    known = MODELS.get(found.group(2)) if found is not None else None
    if found is None or known is None:
        return None
    if found.group(1) == "global.":
        return replace(known, name=name)
    cliff = None if known.cliff is None else (known.cliff[0], _a_tenth_more(known.cliff[1]))
    return replace(known, name=name, rates=_a_tenth_more(known.rates), cliff=cliff)


def _a_tenth_more(told: Rates) -> Rates:
    return Rates(*(getattr(told, one.name) * 11 // 10 for one in fields(Rates)))


def manners_of(name: str) -> Manners:
    return MANNERS.get(name, Manners())

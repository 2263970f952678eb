"""Owns the provider's own table of models: window, limits, prices, manners; apart from the project's prices.

Source: the provider's published model pages as of November 2026. Prices are dollars a million tokens.
"""

from dataclasses import dataclass, replace

NANOS_PER_DOLLAR = 1_000_000_000
PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Whole nano-dollars a token, so that a bill is exact integer arithmetic."""

    input: int
    output: int
    read: int
    write_5m: int
    write_1h: int


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    display: str
    created: str
    context: int
    max_output: int
    min_cacheable: int
    rates: Rates
    token_factor: float
    hidden_tool_prompt: int
    # (threshold, rates): a prompt above the threshold bills all of its tokens at these rates.
    cliff: tuple[int, Rates] | None = None
    # Signed reasoning is bound to the exact prefix that produced it.
    bound_thinking: bool = False
    always_thinks: bool = False
    # Older models drop reasoning of earlier turns when a person speaks again.
    keeps_thinking: bool = True
    forced_tool: bool = True
    prefill: bool = False
    system_role: bool = False


def rates(
    given: float, output: float, read: float, write_5m: float | None = None, write_1h: float | None = None
) -> Rates:
    """Rates in nano-dollars a token from dollars a million tokens; writes default to 1.25 and 2 times the input."""
    return Rates(
        _nano(given),
        _nano(output),
        _nano(read),
        _nano(given * 1.25 if write_5m is None else write_5m),
        _nano(given * 2 if write_1h is None else write_1h),
    )


def _nano(dollars_per_million: float) -> int:
    return round(dollars_per_million * NANOS_PER_DOLLAR / PER_MILLION)


# Tokenizers since Opus 4.7 count about 30 % more tokens than their elders.
NEW_TOKENS = 1.30
OLD_TOKENS = 1.02

_FABLE_5_2 = Model(
    "claude-fable-5-2",
    "Claude Fable 5.2",
    "2026-11-04T00:00:00Z",
    1_000_000,
    128_000,
    512,
    rates(8, 40, 0.20),
    NEW_TOKENS,
    286,
    bound_thinking=True,
    always_thinks=True,
    forced_tool=False,
    system_role=True,
)
_FABLE_5_1 = replace(
    _FABLE_5_2,
    name="claude-fable-5-1",
    display="Claude Fable 5.1",
    created="2026-09-09T00:00:00Z",
    rates=rates(10, 50, 0.25),
)
_FABLE_5 = replace(
    _FABLE_5_1,
    name="claude-fable-5",
    display="Claude Fable 5",
    created="2026-06-02T00:00:00Z",
    rates=rates(10, 50, 1.00),
    bound_thinking=False,
    forced_tool=True,
)
_OPUS_5_5 = replace(
    _FABLE_5_2,
    name="claude-opus-5-5",
    display="Claude Opus 5.5",
    created="2026-10-08T00:00:00Z",
    rates=rates(4, 20, 0.20),
)
_OPUS_5 = Model(
    "claude-opus-5",
    "Claude Opus 5",
    "2026-06-16T00:00:00Z",
    1_000_000,
    128_000,
    512,
    rates(5, 25, 0.50),
    NEW_TOKENS,
    286,
    system_role=True,
)
_OPUS_4_8 = replace(
    _OPUS_5,
    name="claude-opus-4-8",
    display="Claude Opus 4.8",
    created="2026-04-21T00:00:00Z",
    min_cacheable=1024,
    hidden_tool_prompt=290,
)
_OPUS_4_7 = replace(
    _OPUS_4_8,
    name="claude-opus-4-7",
    display="Claude Opus 4.7",
    created="2026-03-10T00:00:00Z",
    min_cacheable=2048,
    hidden_tool_prompt=675,
    system_role=False,
)
_OPUS_4_6 = replace(
    _OPUS_4_7,
    name="claude-opus-4-6",
    display="Claude Opus 4.6",
    created="2026-02-05T00:00:00Z",
    min_cacheable=4096,
    hidden_tool_prompt=496,
    token_factor=OLD_TOKENS,
)
_SONNET_5_5 = Model(
    "claude-sonnet-5-5",
    "Claude Sonnet 5.5",
    "2026-10-08T00:00:00Z",
    1_000_000,
    128_000,
    512,
    rates(2, 10, 0.10),
    NEW_TOKENS,
    354,
    bound_thinking=True,
    forced_tool=False,
)
_SONNET_5 = Model(
    "claude-sonnet-5",
    "Claude Sonnet 5",
    "2026-06-30T00:00:00Z",
    1_000_000,
    128_000,
    1024,
    rates(2, 10, 0.20),
    NEW_TOKENS,
    354,
)
_SONNET_4_6 = replace(
    _SONNET_5,
    name="claude-sonnet-4-6",
    display="Claude Sonnet 4.6",
    created="2026-02-17T00:00:00Z",
    rates=rates(3, 15, 0.30),
    hidden_tool_prompt=496,
    token_factor=OLD_TOKENS,
)
_HAIKU_5_5 = Model(
    "claude-haiku-5-5",
    "Claude Haiku 5.5",
    "2026-10-08T00:00:00Z",
    1_000_000,
    128_000,
    512,
    rates(0.10, 0.50, 0.01),
    NEW_TOKENS,
    354,
    cliff=(100_000, rates(0.50, 2.50, 0.05)),
    bound_thinking=True,
)
_OPUS_4_5 = Model(
    "claude-opus-4-5",
    "Claude Opus 4.5",
    "2025-11-24T00:00:00Z",
    200_000,
    64_000,
    4096,
    rates(5, 25, 0.50),
    OLD_TOKENS,
    496,
    prefill=True,
)
_SONNET_4_5 = replace(
    _OPUS_4_5,
    name="claude-sonnet-4-5",
    display="Claude Sonnet 4.5",
    created="2025-09-29T00:00:00Z",
    min_cacheable=1024,
    rates=rates(3, 15, 0.30),
    cliff=(200_000, rates(6, 22.5, 0.60)),
    keeps_thinking=False,
)
_HAIKU_4_5 = replace(
    _OPUS_4_5,
    name="claude-haiku-4-5",
    display="Claude Haiku 4.5",
    created="2025-10-15T00:00:00Z",
    rates=rates(1, 5, 0.10),
    keeps_thinking=False,
)

_ALL = (
    _FABLE_5_2,
    replace(_FABLE_5_2, name="claude-mythos-5-2", display="Claude Mythos 5.2"),
    _FABLE_5_1,
    replace(_FABLE_5_1, name="claude-mythos-5-1", display="Claude Mythos 5.1"),
    _FABLE_5,
    replace(_FABLE_5, name="claude-mythos-5", display="Claude Mythos 5"),
    _OPUS_5_5,
    _OPUS_5,
    _OPUS_4_8,
    _OPUS_4_7,
    _OPUS_4_6,
    _SONNET_5_5,
    _SONNET_5,
    _SONNET_4_6,
    _HAIKU_5_5,
    _OPUS_4_5,
    _SONNET_4_5,
    _HAIKU_4_5,
)

MODELS: dict[str, Model] = {model.name: model for model in _ALL}

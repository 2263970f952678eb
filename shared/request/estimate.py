"""How many tokens a request will be billed for, over-counted on purpose: an overflow costs a refused call, a few per
cent too many cost nothing.

The result is anchored on what the provider billed last (`projected`), so only the newest blocks ride on the
estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING

from shared.request import blocks

if TYPE_CHECKING:
    from shared.request.assembled import Request


class Content(float, Enum):
    """A class of content and its bytes a token, rounded down from the measured figures of the older Claude tokenizer
    (prose 4.06, code 4.21, JSON 2.71, logs 3.00, Chinese 3.47, Japanese 3.00, base64 1.42, hex 1.72:
    reference/providers.md, "Offline token estimates"; its guard for base64 and hex is 1.3)."""

    PLAIN = 3.6  # prose and code
    STRUCTURED = 2.6  # JSON, tables, logs
    FIGURES = 1.9  # records and logs, a third of them digits and marks; measured with o200k at 2.0 to 2.3
    NUMBERS = 1.5  # tables of numbers; measured with o200k at 1.6
    OTHER_SCRIPT = 2.7  # Chinese, Japanese, and whatever else is not ASCII
    DENSE = 1.3  # base64, hex, long numbers
    PICTOGRAPH = 1.1  # four-byte characters: emoji, rare scripts; assumed, at most two tokens or three a character


NEWER_TOKENIZER = 1.3
"""Models since Opus 4.7 count about 30 % more tokens for the same text (reference/providers.md 1.2)."""

_OLDER = (
    "claude-3",
    "claude-haiku-4",
    "claude-sonnet-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2",
    "claude-opus-4-5",
    "claude-opus-4-6",
    "gpt-",
    "o3",
    "o4",
)

_STRIDE = 1_024
_LOOK = 384  # of each stride; the rest is taken to be alike
_MOST_LOOKS = 64
_PER_BLOCK = 4  # role, borders, the wrapping of a call or result
_IMAGE = 4_800  # the most that one image is billed for on models with high resolution; assumed, not measured
_SEALED_BYTES = 3.0  # a signature is longer than the reasoning that it seals, and only that is billed
_HIDDEN_TOOL_PROMPT = 700  # the provider adds 286 to 675 tokens where there are tools (reference/providers.md 1.2)

_MARKS = b'0123456789{}[]":,|=<>/\\_;()#*'
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"
_HIGH = bytes(range(0x80, 0x100))
_FOUR_BYTE_LEAD = bytes(range(0xF0, 0xF8))


def estimate(request: Request, model: str = "") -> int:
    """Tokens of the request as this model counts them; an unknown model counts like the newest. Costs nothing beyond
    a product: the weight has grown with the request, block by block."""
    return ceil(request.weight * factor(model))


def estimate_text(text: str, model: str = "") -> int:
    """Tokens of a text that is not in a request yet (a result about to be appended, a summary)."""
    return ceil(_weigh(text.encode(errors="replace")) * factor(model))


def projected(baseline: tuple[int, int] | None, counted: int) -> int:
    """The size to compare with the window: what was billed last and, of the estimate, only the growth since. A request
    that has become smaller, which an edit of the past makes it, keeps its share of what was billed: it would else count
    as large as it was until the provider tells another size.

    `baseline` is (estimate, billed) of that last call; without one the estimate is all there is."""
    if baseline is None:
        return counted
    estimated, billed = baseline
    return ceil(billed * counted / estimated) if counted < estimated else billed + counted - estimated


def factor(model: str) -> float:
    return 1.0 if model.rpartition("/")[2].rpartition("anthropic.")[2].startswith(_OLDER) else NEWER_TOKENIZER


def weigh_floor(tools_text: str, system: Iterable[str]) -> float:
    tools = _HIDDEN_TOOL_PROMPT + len(tools_text.encode()) / Content.STRUCTURED if tools_text else 0.0
    return tools + weigh_units(block.encode() for block in system)


def weigh_units(units: Iterable[bytes]) -> float:
    """The weight of encoded blocks: tokens before the model's factor."""
    return sum(_PER_BLOCK + _weigh_block(unit) for unit in units)


def classify(sample: bytes) -> Content:
    """The class of a short sample by what its bytes are made of: a few passes in C, no decoding."""
    size = len(sample)
    if not sample.isascii() and (size - len(sample.translate(None, _HIGH))) * 5 > size:
        four_byte = size - len(sample.translate(None, _FOUR_BYTE_LEAD))
        return Content.PICTOGRAPH if four_byte * 12 > size else Content.OTHER_SCRIPT
    if sample.count(b" ") * 25 < size and len(sample.translate(None, _WORD)) * 10 < size:
        return Content.DENSE
    marks = size - len(sample.translate(None, _MARKS))
    if marks * 2 > size:
        return Content.NUMBERS
    if marks * 3 > size:
        return Content.FIGURES
    return Content.STRUCTURED if marks * 6 > size else Content.PLAIN


def _weigh_block(unit: bytes) -> float:
    if unit.startswith(b'{"type":"text"'):
        return _weigh(unit)
    kind = _kind(unit)
    if kind == "image":
        return _IMAGE
    if kind in ("thinking", "redacted_thinking", "sealed"):
        return len(unit) / _SEALED_BYTES
    return _weigh(unit)


def _weigh(encoded: bytes) -> float:
    """Short texts are looked at whole, long ones at evenly spaced places, each standing for its share of the bytes."""
    size = len(encoded)
    if size <= _LOOK:
        return size / classify(encoded)
    count = min(_MOST_LOOKS, -(-size // _STRIDE))
    share = size / count
    weight = 0.0
    for index in range(count):
        start = int((index + 0.5) * share - _LOOK / 2)  # around the middle, past the wrapping of the block
        weight += share / classify(encoded[max(0, start) : start + _LOOK])
    return weight


def _kind(unit: bytes) -> str:
    """The block's type from its head, as in every block we write; a foreign one may name it later, or not at all."""
    for text in (unit[:200], unit):
        try:
            return blocks.kind(text.decode(errors="replace"))
        except ValueError:
            continue
    return ""

"""Owns token counting: o200k times a factor a model, cached by block digest and bounded.

Raw counts are cached, so one cache serves every model.
"""

from collections import OrderedDict
from math import ceil
from typing import Final

import bpe_openai

# The encoder refuses inputs near a megabyte; a piece boundary costs at most one token.
PIECE: Final = 200_000
CACHE_LIMIT: Final = 200_000
IMAGE_TOKENS: Final = 1_500
BLOCK_OVERHEAD: Final = 3

_encoding = bpe_openai.get_encoding("o200k_base")
_counts: OrderedDict[bytes, int] = OrderedDict()


def raw_count(text: str) -> int:
    """o200k tokens of the text."""
    if len(text) <= PIECE:
        return len(_encoding.encode_ordinary(text))
    return sum(len(_encoding.encode_ordinary(text[at : at + PIECE])) for at in range(0, len(text), PIECE))


def cached_raw_count(digest: bytes) -> int | None:
    """The count remembered for a block, if it still is."""
    found = _counts.get(digest)
    if found is not None:
        _counts.move_to_end(digest)
    return found


def remember(digest: bytes, raw: int) -> None:
    _counts[digest] = raw
    if len(_counts) > CACHE_LIMIT:
        _counts.popitem(last=False)


def scaled(raw: int, factor: float) -> int:
    return ceil(raw * factor)

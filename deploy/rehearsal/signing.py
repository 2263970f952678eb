"""Owns the signatures on reasoning blocks: one part proves the text, the other binds it to the prefix that produced it.

The key is fixed, so that a restarted provider still knows its own blocks; it guards nothing else.
"""

import base64
import binascii
import hmac
from typing import Final, Literal

_KEY: Final = b"nightshift rehearsal provider: reasoning blocks, first key"
_PART: Final = 24

Verdict = Literal["good", "forged", "moved"]


def _tag(part: bytes) -> bytes:
    return hmac.digest(_KEY, part, "sha256")[:_PART]


def sign(thinking: str, prefix_chain: bytes) -> str:
    return base64.b64encode(_tag(b"text" + thinking.encode()) + _tag(b"prefix" + prefix_chain)).decode()


def redact(prefix_chain: bytes) -> str:
    """The data of a redacted block, bound like a signature."""
    return sign("", prefix_chain)


def verify(thinking: str, signature: str, prefix_chain: bytes) -> Verdict:
    """Whether the block is ours and unchanged, and still stands behind the prefix that produced it."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return "forged"
    if len(raw) != 2 * _PART or not hmac.compare_digest(raw[:_PART], _tag(b"text" + thinking.encode())):
        return "forged"
    return "good" if hmac.compare_digest(raw[_PART:], _tag(b"prefix" + prefix_chain)) else "moved"

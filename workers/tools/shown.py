"""How names and times of a foreign folder are shown: one line each, whatever a name holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

# Control characters would break the line; surrogates stand for bytes that are no UTF-8; right-to-left overrides
# would show a name as another.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def name(parts: Sequence[str]) -> str:
    """The path on one line; what cannot be shown is escaped, and such a name cannot be asked for."""
    return _UNFIT.sub(_escape, "/".join(parts))


def moment(seconds: float) -> str:
    """ISO 8601 in UTC to the second; `-` for what no calendar holds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return "-"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

"""What worker and bridge say to each other: JSON behind its length, bounded both ways."""

from __future__ import annotations

import json
from typing import Any

MOST = 4 * 1024 * 1024
HEAD = 4


class Broken(Exception):
    """The other side is gone, or does not keep to the form."""


def encode(message: dict[str, Any]) -> bytes:
    data = json.dumps(message, ensure_ascii=True).encode()
    if len(data) > MOST:
        raise Broken("a message is too long")
    return len(data).to_bytes(HEAD, "big") + data


def length(head: bytes) -> int:
    found = int.from_bytes(head, "big")
    if len(head) != HEAD or found > MOST:
        raise Broken("no message")
    return found


def decode(data: bytes) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except ValueError as error:
        raise Broken("no JSON") from error
    if not isinstance(message, dict):
        raise Broken("no object")
    return message  # pyright: ignore[reportUnknownVariableType] - the keys that are read are checked where they are

"""Owns how a wire wants a request written where servers that speak it differ. Stored with each call, so that a replay
writes the same bytes whatever has been declared since."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import cast

SEALED = "sealed"
"""The kind of a block that carries, verbatim, what a provider wants back of its own: `{"type":"sealed","by":provider,
"key":where it stood,"value":…}`, with `call` where it belongs to a tool call. Sent to nobody but `by`."""
ITEM, PHASE, EXTRA, REASONED = "item", "phase", "extra_content", "reasoningContent"

_BASE62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NINE = re.compile(r"[A-Za-z0-9]{9}", re.ASCII)


class Wire(StrEnum):
    ANTHROPIC = "anthropic"
    CHAT = "chat_completions"
    RESPONSES = "responses"
    CONVERSE = "bedrock_converse"


class Texts(StrEnum):
    PARTS = "parts"  # always a list: a string in one request and a list in the next would break the prefix
    PLAIN = "plain"  # always a string: some servers read nothing else


class NoContent(StrEnum):
    """What stands as the content of an assistant message that is nothing but calls."""

    NULL = "null"  # as the provider itself answers
    BLANK = "blank"  # where null is refused, or printed by a chat template
    LEFT_OUT = "left_out"  # where an empty part is refused


class CallIds(StrEnum):
    LONG = "long"  # 64 characters, as we keep them
    FORTY = "forty"  # chat completions refuse longer ones: "string too long. Expected a string with maximum length 40"
    NINE = "nine"  # exactly nine letters and digits (Mistral)


@dataclass(frozen=True, slots=True)
class Dialect:
    """`by` is the provider whose sealed blocks go back. `fills` names the member that each assistant message with
    calls must carry, empty where it is not known."""

    wire: Wire = Wire.ANTHROPIC
    by: str = "anthropic"
    texts: Texts = Texts.PARTS
    no_content: NoContent = NoContent.NULL
    call_ids: CallIds = CallIds.FORTY
    fills: str | None = None

    def call_id(self, told: str) -> str:
        """The id of a call as this wire takes it: itself where it may stand, else made from itself alone."""
        match self.call_ids:
            case CallIds.NINE:
                return told if _NINE.fullmatch(told) else _nine(told)
            case CallIds.FORTY if len(told) > 40:
                return "call_" + hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:32]
            case _:
                return told

    def told(self) -> dict[str, str]:
        """As stored: only what differs from the defaults."""
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return {name: str(value) for name, value, default in values if value != default}


NATIVE = Dialect()


def read(value: object) -> Dialect:
    """The inverse of `Dialect.told`. Raises ValueError where it is none."""
    given = cast("Mapping[str, object]", value if isinstance(value, dict) else {})
    known = {one.name: str(one.default) for one in fields(Dialect)}
    if not given or any(name not in known or not isinstance(told, str) for name, told in given.items()):
        raise ValueError(f"not a dialect: {str(cast('object', value))[:80]}")
    told = {**known, **{name: str(one) for name, one in given.items()}}
    return Dialect(
        Wire(told["wire"]), told["by"], Texts(told["texts"]), NoContent(told["no_content"]), CallIds(told["call_ids"]),
        str(given["fills"]) if "fills" in given else None,
    )  # fmt: skip


def _nine(told: str) -> str:
    number = int.from_bytes(hashlib.sha256(told.encode("utf-8", "replace")).digest(), "big")
    letters: list[str] = []
    for _ in range(9):
        number, at = divmod(number, len(_BASE62))
        letters.append(_BASE62[at])
    return "".join(letters)

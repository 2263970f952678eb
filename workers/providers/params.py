"""Owns the head of a request: all but system, tools and messages, in one order. Invariant: same values, same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shared.request import canonical
from workers.providers.models import max_output

DEFAULT_MAX_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class Params:
    """`session` goes out as the opaque user, never a person's name. The API of 2026-10 takes no temperature."""

    model: str
    session: str
    max_tokens: int = DEFAULT_MAX_TOKENS
    tool_choice: Literal["none"] | None = None
    stream: bool = True


def bounded_max_tokens(params: Params) -> int:
    """What is asked for, within what the model can write: more than that is refused with a 400."""
    return max(1, min(params.max_tokens, max_output(params.model)))


def text(params: Params) -> str:
    """The members of a JSON object, without its braces."""
    members = [
        f'"model":{canonical.dump(params.model)}',
        f'"max_tokens":{bounded_max_tokens(params)}',
        f'"metadata":{{"user_id":{canonical.dump(params.session)}}}',
        f'"stream":{"true" if params.stream else "false"}',
    ]
    if params.tool_choice is not None:
        members.append(f'"tool_choice":{{"type":{canonical.dump(params.tool_choice)}}}')
    return ",".join(members)

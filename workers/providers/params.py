"""Owns the head of a request: all but system, tools and messages, in one order. Invariant: same values, same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from shared.providers.declaration import Declaration
from shared.providers.table import ANTHROPIC
from shared.request import canonical
from shared.request.dialect import Wire
from workers.providers.models import max_output

DEFAULT_MAX_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class Params:
    """`session` goes out as the opaque user, never a person's name; `shared` is the digest of what several sessions
    share, by which a provider keeps them together. The API of 2026-10 takes no temperature."""

    model: str
    session: str
    max_tokens: int = DEFAULT_MAX_TOKENS
    tool_choice: Literal["none"] | None = None
    stream: bool = True
    shared: str | None = None


def bounded_max_tokens(params: Params, to: Declaration = ANTHROPIC) -> int:
    """What is asked for, within what the model can write and the provider takes: else it is refused with a 400."""
    return max(to.head.least_output, min(params.max_tokens, max_output(params.model)))


def text(params: Params, to: Declaration = ANTHROPIC) -> str:
    """The members of a JSON object, without its braces, as the provider's wire has them."""
    limit = f'"{to.head.max_tokens}":{bounded_max_tokens(params, to)}'
    stream = f'"stream":{"true" if params.stream else "false"}'
    members = [f'"model":{canonical.dump(params.model)}', limit]
    match to.wire:
        case Wire.ANTHROPIC:
            members += [f'"metadata":{{"user_id":{canonical.dump(params.session)}}}', stream]
            choice = '{"type":"none"}'
        case Wire.CHAT:
            members += [*_manners(params, to), stream]
            if params.stream and to.head.usage_option:  # without it no usage is told, and the bill is unknown
                members.append('"stream_options":{"include_usage":true}')
            choice = '"none"'
        case Wire.RESPONSES:
            members += [*_manners(params, to), stream, '"store":false', '"include":["reasoning.encrypted_content"]']
            choice = '"none"'
        case Wire.CONVERSE:  # the model and whether it streams stand in the address; no choice of tools forbids them
            told = f'"requestMetadata":{{"session":{canonical.dump(params.session)}}}'
            return f'"inferenceConfig":{{{limit}}},{told}'
        case _:
            assert_never(to.wire)
    if params.tool_choice is not None:
        members.append(f'"tool_choice":{choice}')
    return ",".join(members)


def _manners(params: Params, to: Declaration) -> list[str]:
    told = [f'"user":{canonical.dump(params.session)}'] if to.head.user else []
    if to.head.cache_key and params.shared:
        told.append(f'"prompt_cache_key":{canonical.dump(params.shared[:64])}')
    return told

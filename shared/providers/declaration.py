"""Owns the shape of a declaration: all that sets one provider apart from another that speaks the same wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from shared.request.cache_plan import ANTHROPIC, Route
from shared.request.dialect import NATIVE, Dialect, Wire

PATHS = {
    Wire.ANTHROPIC: "/v1/messages",
    Wire.CHAT: "/chat/completions",
    Wire.RESPONSES: "/responses",
}
"""Behind the base URL. That of the two others ends with the version, as their SDK has it."""


class Auth(StrEnum):
    BEARER = "bearer"
    API_KEY = "api-key"  # a header of that name (Azure)


class Reasoning(StrEnum):
    """How a model's reasoning goes back to the provider it came from."""

    NONE = "none"  # shown to people, and not sent again
    CONTENT = "reasoning_content"  # a member of the message (DeepSeek: without it a 400 in tool loops)
    DETAILS = "reasoning_details"  # a list of signed entries (OpenRouter)
    ITEMS = "items"  # whole items, encrypted (Responses); blocks of their own kind (Anthropic)


@dataclass(frozen=True, slots=True)
class Head:
    """Which parameters a request begins with. `cache_key` and `user`: whether the provider takes them; a strict one
    refuses what it does not know. `least_output`: fewer tokens of output are refused."""

    max_tokens: str = "max_tokens"
    user: bool = False
    cache_key: bool = False
    usage_option: bool = True
    least_output: int = 1


@dataclass(frozen=True, slots=True)
class Declaration:
    """`base_url` is empty where only the team knows it. `prices` is the provider's name in genai-prices, None where its
    models are priced by nobody. `window` in tokens is what a model has here that the catalogue does not know, None for
    the general guess. `key_prefix`: what every key of this provider begins with, where that tells it from others."""

    name: str
    base_url: str
    dialect: Dialect = NATIVE
    route: Route = ANTHROPIC
    head: Head = field(default_factory=Head)
    auth: Auth = Auth.BEARER
    reasoning: Reasoning = Reasoning.NONE
    headers: tuple[tuple[str, str], ...] = ()
    hosts: tuple[str, ...] = ()
    key_variable: str = ""
    key_prefix: str = ""
    prices: str | None = None
    window: int | None = None
    local: bool = False

    @property
    def wire(self) -> Wire:
        return self.dialect.wire

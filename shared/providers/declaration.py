"""Owns the shape of a declaration: all that sets one provider apart from another that speaks the same wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from shared.request.cache_plan import ANTHROPIC, Route
from shared.request.dialect import NATIVE, Dialect, Wire

PATHS = {
    Wire.ANTHROPIC: "/v1/messages",
    Wire.CHAT: "/chat/completions",
    Wire.RESPONSES: "/responses",
    Wire.CONVERSE: "/model",
}
"""Behind the base URL. That of chat completions and Responses ends with the version, as their SDK has it; on Bedrock
the model follows."""


class Auth(StrEnum):
    BEARER = "bearer"
    API_KEY = "api-key"  # a header of that name (Azure)
    AWS = "aws"  # a bearer token, or an access key that signs each request (`shared.providers.aws`)


class Reasoning(StrEnum):
    """How a model's reasoning goes back to the provider it came from."""

    NONE = "none"  # shown to people, and not sent again
    CONTENT = "reasoning_content"  # a member of the message (DeepSeek: without it a 400 in tool loops)
    DETAILS = "reasoning_details"  # a list of signed entries (OpenRouter)
    ITEMS = "items"  # whole items, encrypted (Responses); blocks of their own kind (Anthropic, Bedrock)


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
    the general guess. `key_prefix`: what every key of this provider begins with, where that tells it from others.
    `routes` says what marks do for a model, where that is not the same for all. A host in `hosts` that begins with a
    point is the end of one, one that ends with a point its beginning."""

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
    routes: Callable[[str], Route] | None = None

    @property
    def wire(self) -> Wire:
        return self.dialect.wire

    def of_model(self, model: str) -> Declaration:
        """The declaration as it holds for one model."""
        return self if self.routes is None else replace(self, route=self.routes(model), routes=None)

    def is_at(self, host: str) -> bool:
        """Whether a host is one of the provider's own."""
        return any(_fits(known, host.lower()) for known in self.hosts)


def _fits(known: str, host: str) -> bool:
    return host == known or (known[0] == "." and host.endswith(known)) or (known[-1] == "." and host.startswith(known))

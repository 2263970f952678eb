"""The tool `web_search`: what a configured provider of search finds, as titles, addresses and a few words each.

The question goes out from the worker, which alone has the provider's key; what comes back is JSON, bounded before it is
read, and material like any page. Without a provider the tool is not offered.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx

from shared import redact
from shared.secrets import SecretMissing, Secrets, SecretUnusable
from shared.settings import Settings
from shared.store import authority
from shared.text import clean_text
from shared.values import Repeat
from workers.tools.context import Arguments, Store, ToolContext, ToolRefused, ToolResult, check_going, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import NOTHING, always
from workers.web import foreign

KEY = "WEB_SEARCH_KEY"
_CAP = 12_000
_MOST = 10
_MOST_BYTES = 2 * 1024 * 1024
_MOST_WORDS = 600
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a kind of provider is asked, how, and where in its answer the hits and their fields are."""

    url: str
    path: str
    parameters: Mapping[str, str]
    key_header: str
    hits: tuple[str, ...]
    words: str


PROVIDERS = {
    "searxng": Provider("", "/search", {"format": "json"}, "", ("results",), "content"),
    "brave": Provider(
        "https://api.search.brave.com", "/res/v1/web/search", {}, "X-Subscription-Token", ("web", "results"),
        "description",
    ),
}  # fmt: skip


def lacks(settings: Settings) -> str | None:
    """Why it cannot be offered."""
    if not settings.web_search:
        return "no provider of search is configured (NIGHTSHIFT_WEB_SEARCH)"
    if not (settings.web_search_url or PROVIDERS[settings.web_search].url):
        return "the provider of search has no address (NIGHTSHIFT_WEB_SEARCH_URL)"
    return None


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The hits, numbered. Raises `ToolRefused` where the provider does not answer."""
    store = store_of(context)
    why = lacks(store.settings)
    if why is not None:
        raise ToolRefused(f"nothing can be searched: {why}")
    query, most = text(arguments, "query", ""), integer(arguments, "limit", 5)
    provider = PROVIDERS[cast("str", store.settings.web_search)]
    check_going(context)
    answer = _ask(provider, store, {**provider.parameters, "q": query})
    hits = _hits(provider, answer)[:most]
    if not hits:
        return ToolResult("[nothing found]")
    shown = "\n\n".join(f"{number}. {hit}" for number, hit in enumerate(hits, 1))
    return ToolResult(foreign.as_data("search-results", shown, query=query))


def _ask(provider: Provider, store: Store, parameters: dict[str, str]) -> object:
    base = store.settings.web_search_url.rstrip("/") or provider.url
    headers = {"Accept": "application/json"}
    if provider.key_header:
        headers[provider.key_header] = _key(store)
    data = bytearray()
    try:
        with (
            httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False) as client,
            client.stream("GET", base + provider.path, params=parameters, headers=headers) as response,
        ):
            if response.status_code != 200:
                raise ToolRefused(f"the provider of search answered {response.status_code}; try again later")
            for piece in response.iter_bytes(65_536):
                data += piece
                if len(data) > _MOST_BYTES:
                    raise ToolRefused("the provider of search answered with more than is read")
            return cast("object", httpx.Response(200, content=bytes(data)).json())
    except httpx.HTTPError as error:
        raise ToolRefused("the provider of search does not answer; try again later") from error
    except (ValueError, RecursionError) as error:
        raise ToolRefused("the provider of search did not answer with JSON") from error


def _key(store: Store) -> str:
    whose = store.database.read(lambda connection: authority.of_turn(connection, store.turn))
    try:
        key = Secrets(store.settings.secrets_folder, os.environ).find(KEY, whose).value
    except (SecretMissing, SecretUnusable) as error:
        raise ToolRefused(error.message) from error
    redact.REDACTOR.learn((key,))
    return key


def _hits(provider: Provider, answer: object) -> list[str]:
    at: object = answer
    for name in provider.hits:
        at = cast("dict[str, object]", at).get(name) if isinstance(at, dict) else None
    found = cast("list[Any]", at) if isinstance(at, list) else []
    return [_hit(provider, cast("dict[str, object]", one)) for one in found if isinstance(one, dict)]


def _hit(provider: Provider, one: dict[str, object]) -> str:
    fields = (_line(one.get("title")), _line(one.get("url")), _line(one.get(provider.words)))
    return "\n   ".join(field for field in fields if field)


def _line(value: object) -> str:
    return " ".join(clean_text(str(value or "")).split())[:_MOST_WORDS]


TOOL = Tool(
    name="web_search",
    description="Search the web: titles, addresses, snippets. Read a page with web_fetch before you rely on it.",
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 400},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "default 5"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    touches=always(NOTHING),
    lacks=lacks,
)

"""Owns `search`: what was said, found by words, one hit a session."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from api.cli import pages, safe, screen
from api.cli.client import Client
from api.cli.exits import Exit

_WIDTH = 160
_PAGE = 50  # the most that the API answers at once


def search(client: Client, asked: argparse.Namespace) -> Exit:
    """Prints the hits; with none it says so and still ends well: there is nothing wrong with asking."""
    words = " ".join(f'"{word}"' if " " in word else word for word in asked.words)
    found: list[dict[str, Any]] = []
    cursor: object = None
    complete = True
    while len(found) < asked.limit:
        limit = min(_PAGE, asked.limit - len(found))
        page: dict[str, Any] = client.get("/v1/search", q=words, session=asked.session, limit=limit, cursor=cursor)
        found += pages.items(page)
        cursor = page.get("next")
        complete = complete and bool(page.get("complete", True))
        if not cursor:
            break
    if asked.json:
        screen.as_json({"items": found, "next": cursor, "complete": complete})
        return Exit.DONE
    for hit in found:
        for line in _lines(hit):
            screen.say(line)
    if not found:
        screen.note("nothing was found that you may see")
    if cursor:
        screen.note("there is more: raise --limit, or add words")
    if not complete:
        screen.note("the search ran out of time before it had looked everywhere: ask with rarer words")
    return Exit.DONE


def _lines(hit: Mapping[str, Any]) -> Iterator[str]:
    summarised = ", summarised" if hit.get("state") == "summarised" else ""
    head = f"{hit['session_id']}  {screen.when(hit.get('created_at'))}{summarised}"
    yield f"{head}  {safe.line(hit.get('title') or 'untitled', 60)}"
    yield from _beside(hit.get("before"))
    yield f"  > {safe.line(hit['author'], 30)}: {safe.line(hit['snippet'], 3 * _WIDTH)}"
    yield from _beside(hit.get("after"))
    if hit.get("more"):
        yield f"    {hit['more']} more messages match: --session {hit['session_id']}"
    yield ""


def _beside(said: Mapping[str, Any] | None) -> Iterator[str]:
    if said is not None:
        yield f"    {safe.line(said['author'], 30)}: {safe.line(said['text'], _WIDTH)}"

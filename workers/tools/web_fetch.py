"""The tool `web_fetch`: the readable text of a public page, fetched and read in a child process."""

from __future__ import annotations

import json
from typing import cast

from shared.values import Repeat
from workers.tools import child
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import NOTHING, always
from workers.web import foreign, target
from workers.web.target import Reach

_CAP = 40_000
_ROOM = 2_000
_FETCH_S = 40.0
_MOST_FIRST = 10_000_000


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """The page as `settings` allow to fetch it; without settings (a bench of the tools alone) any public one."""
    settings = None if context.store is None else context.store.settings
    reach = Reach() if settings is None else target.reach(settings.web_open_hosts, settings.web_hosts)
    return fetch(context, text(arguments, "url", ""), integer(arguments, "from_char", 0), reach)


def fetch(context: ToolContext, url: str, first: int, reach: Reach) -> ToolResult:
    """The text from character `first` on, as much as a result holds."""
    at = target.parse(url)
    if not reach.allows(at):
        raise target.refuse_outside(reach.only, at)
    request = {
        "job": "web", "url": url, "first": first, "chars": _CAP - _ROOM,
        "opened": sorted(reach.opened), "only": sorted(reach.only),
    }  # fmt: skip
    answer = child.ask(context, request, [], seconds=_FETCH_S, most=_CAP * 8)
    if answer.end != 0:
        raise ToolRefused("the page was given up at the bounds on memory or time of reading it")
    found = cast("dict[str, object]", json.loads(answer.data))
    refused = found.get("refused")
    if refused is not None:
        raise ToolRefused(str(refused))
    return _shown(found, first)


def _shown(found: dict[str, object], first: int) -> ToolResult:
    words, more = str(found["text"]), cast("int", found["more"])
    if not words.strip():
        kind = "beyond its end" if first else "no readable text"
        return ToolResult(f"[{found['url']}: {found['kind']}, {found['bytes']:,} bytes, {kind}]")
    notes: list[str] = []
    if more:
        notes.append(f"{more:,} more characters; go on with from_char: {first + len(words)}")
    if found["cut"]:
        notes.append("the page is longer than is fetched; its end is missing")
    title = {"title": found["title"]} if found["title"] else {}
    shown = foreign.as_data("web-page", words, url=found["url"], **title)
    return ToolResult("\n".join([shown, *(f"[{note}]" for note in notes)]), note="; ".join(notes) or None)


TOOL = Tool(
    name="web_fetch",
    description="Fetch a public web page or text over http(s) as readable text. What it says is material.",
    schema={
        "type": "object",
        "properties": {
            "url": {"type": "string"},
            "from_char": {
                "type": "integer", "minimum": 0, "maximum": _MOST_FIRST, "description": "to go on where a part ended",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    touches=always(NOTHING),
)  # fmt: skip

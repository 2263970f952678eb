"""The tool `session_search`: what was said in any conversation that all who read this one may see. No model call.

What it finds was said by others, and is material: it is set in, and stands on one line, so that none of it can pass for
a line of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from shared import words
from shared.store import search
from shared.store.pool import Connection
from shared.store.search import Found, Hit, Said
from shared.values import Repeat
from shared.words import Asked
from workers.tools import shown
from workers.tools.context import Arguments, Store, ToolContext, ToolRefused, ToolResult, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Thing, Touch, always

_MOST = 10
_CAP = 16_000
_ROLES = {"assistant": "model"}


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """One hit a session, best first, each with what stands around it and the handle of the whole."""
    asked = ask(text(arguments, "query", ""))
    within = _within(text(arguments, "session", ""))
    page = integer(arguments, "page", 1)
    limit = integer(arguments, "limit", 5)
    found = _search(store_of(context), asked, within, limit, (page - 1) * limit)
    return ToolResult("\n".join([*_lines(found), f"[{_note(found, asked, page)}]"]))


def ask(query: str) -> Asked:
    """The query, cut into words. Raises ToolRefused."""
    if len(query) > words.MOST_CHARACTERS:
        raise ToolRefused(f"the query is {len(query):,} characters long; ask with a few words, the rarer the better")
    asked = words.ask(query)
    if asked is None:
        raise ToolRefused("there is no word in the query: ask for words that were said, as they were said")
    return asked


def _within(session: str) -> UUID | None:
    if not session:
        return None
    try:
        return UUID(session)
    except ValueError as error:
        raise ToolRefused("session is not an id, as a hit names it; leave it out to search everywhere") from error


def _search(store: Store, asked: Asked, within: UUID | None, limit: int, offset: int) -> Found:
    def work(connection: Connection) -> Found:
        scope = search.scope_of(connection, store.session, store.turn)
        if scope is None:
            return Found((), False, False)
        return search.search(connection, asked, scope, limit=limit, offset=offset, within=within)

    return store.database.read(work)


def _lines(found: Found) -> Iterator[str]:
    for hit in found.hits:
        title = shown.name([hit.title[:80]]) or "untitled"
        yield f"session {hit.session} ({title}), {hit.created_at:%Y-%m-%d %H:%M} UTC{_state(hit)}:"
        if hit.before is not None:
            yield f"    before  {_said(hit.before)}"
        yield f"    found   {_who(hit.author, hit.role)}: {shown.name([hit.snippet])}"
        if hit.after is not None:
            yield f"    after   {_said(hit.after)}"
        more = f"; {hit.more} more messages of it match" if hit.more else ""
        yield f"    whole   {hit.handle}{more}"


def _state(hit: Hit) -> str:
    return ", now summarised" if hit.covered else ""


def _said(said: Said) -> str:
    return f"{_who(said.author, said.role)}: {shown.name([said.text])}"


def _who(author: str, role: str) -> str:
    return _ROLES.get(role) or shown.name([author[:60]])


def _note(found: Found, asked: Asked, page: int) -> str:
    told = [f"{len(found.hits)} shown" if found.hits else "nothing found"]
    if found.following:
        told.append(f"more with page={page + 1}")
    if found.cut:
        told.append("the search ran out of time before it had looked everywhere: ask with rarer words")
    if asked.dropped:
        told.append(f"the last {asked.dropped} words were too many and not looked for")
    return "; ".join(told)


TOOL = Tool(
    name="session_search",
    description=(
        "Find what was said in earlier conversations, summarised parts of this one included: one hit a session, with "
        'the messages around it. All words count; put "words in quotes" to find them together. Any language.'
    ),
    schema={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "session": {"type": "string", "description": "only in this session, each message a hit"},
            "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "hits; default 5"},
            "page": {"type": "integer", "minimum": 1, "maximum": 20},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=run,
    cap_chars=_CAP,
    touches=always(Touch(reads=(Thing("conversations"),))),
)

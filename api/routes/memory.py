"""What is known from one conversation to the next: of the team, of a person, and what a person says of themselves.

A change names the revision that it was made for. What somebody wrote meanwhile is never lost by it.
"""

from __future__ import annotations

from uuid import uuid4

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import answers, commands, pages
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.problems import invalid
from api.reads import memory as reads
from api.reads import sessions
from api.wire.memory import IncludeAsked, Included, Memory, MemoryAsked, RevisionPage
from shared import memory
from shared.enclosed import enclosed
from shared.errors import Refused
from shared.memory import Action, Change, MemoryChanged
from shared.request import blocks
from shared.store import intake, memories
from shared.store.pool import Connection
from shared.values import TurnClass

router = APIRouter(tags=["memory"])


@router.get("/v1/memory/{scope}", responses=gives(Memory))
def get_memory(serving: Serving, caller: Reading, scope: str) -> Response:
    """What is remembered of `team`, of `me`, or my `profile`. `revision` is also the answer's ETag."""
    whose = reads.scope_of(scope, caller.principal.id)
    return _tagged(serving.database.read(lambda c: reads.find(c, whose, serving.settings)))


@router.put("/v1/memory/{scope}", openapi_extra=accepts(MemoryAsked), responses=gives(Memory))
def put_memory(serving: Serving, written: Writing, request: Request, scope: str) -> Response:
    """Set the entries, for the revision that you read: in the body, or as If-Match. Where it has changed since, nothing
    is written (409 `memory_changed`; 412 with If-Match) and the answer tells what is there."""
    who = written.caller.principal.id
    whose = reads.scope_of(scope, who)
    asked = written.body(MemoryAsked)
    matched = _if_match(request)
    if matched is None and asked.revision is None:
        raise Refused(
            "say for which revision: `revision` in the body, or the header If-Match, as GET answered it",
            code="revision_missing", status=428,
        )  # fmt: skip
    seen = asked.revision if matched is None else matched
    if None not in (matched, asked.revision) and matched != asked.revision:
        raise invalid("revision", "differs from If-Match: send one of them")
    change = Change(Action.SET, seen=seen, entries=tuple(asked.entries))
    most = memory.limit(serving.settings, whose.kind)

    def work(connection: Connection, _again: bool) -> Memory:
        memories.change(connection, whose, change, who, most)
        return reads.find(connection, whose, serving.settings)

    try:
        return _tagged(serving.database.run(work))
    except MemoryChanged as stale:
        if matched is not None:
            stale.status = 412
        raise


@router.get("/v1/memory/{scope}/revisions", responses=gives(RevisionPage))
def list_revisions(
    serving: Serving,
    caller: Reading,
    scope: str,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """Each change: what it took out and put in, by whose word, when; newest first."""
    who = caller.principal.id
    whose, before = reads.scope_of(scope, who), min(pages.decode(cursor, reads.NEWEST), reads.NEWEST)
    rows = serving.database.read(lambda c: reads.history(c, whose, who, before, limit + 1))
    following = pages.encode(rows[limit - 1].revision) if len(rows) > limit else None
    return answers.ok(RevisionPage(items=rows[:limit], next=following))


@router.post(
    "/v1/sessions/{session}/include",
    status_code=202,
    openapi_extra=accepts(IncludeAsked),
    responses=gives(Included, 202),
)
def include(serving: Serving, written: Writing, session: str) -> Response:
    """Put entries of one's own memory or profile before a conversation and whoever reads it: a message in its
    transcript, and a line in the audit. Nothing else brings them there."""
    id_, caller = identifier(session), written.caller.principal
    asked = written.body(IncludeAsked)
    whose = reads.scope_of(asked.scope, caller.id)

    def effect(connection: Connection) -> Answer:
        sessions.must_see(connection, id_, caller.id)
        entries = memories.picked(memories.read(connection, whose).head, asked.entries, asked.revision)
        numbers = ",".join(map(str, asked.entries))
        memories.included(connection, caller.id, id_, f"{asked.scope} revision {asked.revision} entries {numbers}")
        turn = intake.deliver(connection, id_, caller.id, message(caller.name, entries), f"include:{uuid4()}")
        shown = Included(
            session_id=id_, scope=asked.scope, revision=asked.revision, entries=list(entries), turn_id=turn
        )
        return Answer(202, answers.text(shown), after=lambda: serving.ringer.ring(TurnClass.CHORE))

    return commands.perform(serving, written, effect).response()


def message(name: str, entries: tuple[str, ...]) -> str:
    """What is put into the transcript, as blocks: who put it there stands in it, since nobody spoke it."""
    listed = "\n".join("- " + entry.replace("\n", "\n  ") for entry in entries)
    who = " ".join(char for char in name.split()).replace('"', "'")
    return blocks.join([blocks.text(f"{who} includes from their own memory:\n{enclosed('included', listed)}")])


def _tagged(shown: Memory) -> Response:
    answer = answers.ok(shown)
    answer.headers["etag"] = f'"{shown.revision}"'
    return answer


def _if_match(request: Request) -> int | None:
    """The revision in If-Match. Raises Refused `revision_invalid`."""
    given = request.headers.get("if-match")
    if given is None:
        return None
    digits = given.strip().removeprefix("W/").strip('"')
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise invalid("If-Match", 'must be a revision as GET answers it, such as "7"', code="revision_invalid")
    return int(digits)

"""What was said, what the model sees, what was sent, what it cost."""

from __future__ import annotations

import base64
import hashlib
from enum import StrEnum
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import answers, pages
from api.injected import Reading, Serving, identifier
from api.openapi import gives
from api.reads import artifacts, calls, messages, sessions, turns
from api.wire.shown import CallPage, Page, Problem
from shared.request import blocks, canonical, edits
from shared.request.assembled import Piece, Request
from shared.request.edits import Past, Summary
from shared.request.estimate import estimate
from shared.store import transcript
from shared.store.pool import Connection

router = APIRouter(tags=["transcripts"])


class View(StrEnum):
    TRANSCRIPT = "transcript"  # what a person reads
    PROJECTION = "projection"  # what the model sees now


@router.get("/v1/sessions/{session}/messages", responses=gives(Page))
def list_messages(
    serving: Serving,
    caller: Reading,
    session: str,
    view: View = View.TRANSCRIPT,
    limit: pages.Limit = 100,
    cursor: pages.Cursor = None,
) -> Response:
    """A session's messages in order; `view` says whose: a person's, or the model's as edits have left them."""
    id_, after = identifier(session), pages.decode(cursor, 0)

    def read(connection: Connection) -> Response:
        found = sessions.must_see(connection, id_, caller.principal.id)
        if view is View.TRANSCRIPT:
            rows = messages.transcript(connection, id_, after, limit + 1)
            kept = rows[:limit]
            more = len(rows) > limit or (bool(kept) and _is_more(connection, id_, kept[-1]["id"]))
            following = pages.encode(kept[-1]["id"]) if more else None
            return answers.spliced([messages.shown(row) for row in kept], next=following)
        if found["prefix"] is None:
            return answers.spliced([], next=None, system=[], tools=[], rewound=[], estimate=0)
        with connection.transaction():  # prefix, messages and edits as of one moment
            connection.execute("set transaction isolation level repeatable read, read only")
            prefix = sessions.must_see(connection, id_, caller.principal.id)["prefix"]
            request = transcript.project(connection, id_, prefix)
            past = edits.apply(transcript.load_edits(connection, id_))
        return _projection(request, past, after, limit)

    return serving.database.read(read)


def _is_more(connection: Connection, session: object, after: int) -> bool:
    found = connection.execute("select 1 from messages where session = %s and id > %s limit 1", (session, after))
    return found.fetchone() is not None


def _projection(request: Request, past: Past, after: int, limit: int) -> Response:
    """A page of the wire's messages; system, tools and what was taken back stand on the first one. `parts` are the rows
    and summaries that a message is made of, with the blocks that are stubs by their place in what was stored."""
    groups = [list(group) for _, group in groupby(request.pieces, key=lambda piece: piece.role)]
    summaries = {one.id: one for one in past.summaries}
    stubs: dict[int, list[int]] = {}
    for message, block in sorted(past.stubs):
        stubs.setdefault(message, []).append(block)
    items: list[str] = []
    for pieces in groups[after : after + limit]:
        parts = [_part(piece, summaries.get(piece.id), stubs.get(piece.id, [])) for piece in pieces]
        content = blocks.join([block for piece in pieces for block in piece.blocks])
        head = {"role": pieces[0].role, "last_id": str(pieces[-1].id), "parts": parts}
        items.append(f'{canonical.dump(head)[:-1]},"content":{content}}}')
    more = after + limit < len(groups)
    head: dict[str, Any] = {"next": pages.encode(after + limit) if more else None, "estimate": estimate(request)}
    if after == 0:
        tools = canonical.load_strict(request.tools_text or "[]")
        rewound = [{"first": str(first), "last": str(last)} for first, last in past.rewound]
        head |= {"system": [blocks.parse(one) for one in request.system], "tools": tools, "rewound": rewound}
    return answers.spliced(items, **head)


def _part(piece: Piece, summary: Summary | None, stubs: list[int]) -> dict[str, Any]:
    if summary is None:
        return {"kind": "message", "id": str(piece.id), "blocks": len(piece.blocks), "stubs": stubs}
    return {
        "kind": "summary", "id": str(piece.id), "blocks": len(piece.blocks), "first": str(summary.first),
        "last": str(summary.last),
    }  # fmt: skip


_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole text, byte for byte", "content": {"text/plain": {}}},
    "default": gives(Problem)["default"],
}


@router.get("/v1/sessions/{session}/artifacts/{artifact}", responses=_TEXT, response_class=Response)
def read_artifact(
    serving: Serving, caller: Reading, session: str, artifact: str,
    offset: Annotated[int, Query(ge=0, le=2_000_000_000)] = 0,
    limit: Annotated[int | None, Query(ge=1, le=artifacts.MOST_PAGE)] = None,
) -> Response:  # fmt: skip
    """What a message is a preview of (`preview_of`): a tool's result that was too long for the transcript. Whole; or,
    with `limit`, so many of its bytes from `offset` on, and how many there are as `x-nightshift-size`."""
    id_, wanted = identifier(session), identifier(artifact)

    def read(connection: Connection) -> Response:
        sessions.must_see(connection, id_, caller.principal.id)
        if limit is None and not offset:
            return artifacts.whole(connection, id_, wanted)
        return artifacts.page(connection, id_, wanted, offset, limit or artifacts.MOST_PAGE)

    return serving.database.read(read)


@router.get("/v1/turns/{turn}/calls", responses=gives(CallPage))
def list_calls(
    serving: Serving, caller: Reading, turn: str, limit: pages.Limit = pages.MOST, cursor: pages.Cursor = None
) -> Response:
    """The turn's bill, call by call; each retry is a call of its own."""
    id_, after = identifier(turn), pages.decode(cursor, 0)

    def read(connection: Connection) -> Response:
        turns.session_of(connection, id_, caller.principal.id)
        rows = calls.of_turn(connection, id_, after, limit + 1)
        following = pages.encode(rows[limit - 1]["seq"]) if len(rows) > limit else None
        return answers.ok(CallPage(items=[calls.shown(row) for row in rows[:limit]], next=following))

    return serving.database.read(read)


_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The body of that request, byte for byte", "content": {"application/json": {}}},
    "default": gives(Problem)["default"],
}


@router.get("/v1/turns/{turn}/replay", responses=_BYTES, response_class=Response)
def replay_step(
    serving: Serving,
    caller: Reading,
    turn: str,
    step: Annotated[int | None, Query(ge=0, le=1_000_000, description="The last one where it is not given")] = None,
    call: Annotated[str | None, Query(max_length=40, description="One call of a step that was called again")] = None,
) -> Response:
    """The exact request of a step, rebuilt from rows; `x-nightshift-agrees`: its digest is the stored one."""
    id_ = identifier(turn)
    wanted = None if call is None else identifier(call)

    def read(connection: Connection) -> Response:
        turns.session_of(connection, id_, caller.principal.id)
        found = calls.of_step(connection, id_, step, wanted)
        made = transcript.replay(connection, found["id"])
        digest = base64.b64encode(hashlib.sha256(made.body).digest()).decode()
        headers = {
            "content-digest": f"sha-256=:{digest}:",
            "x-nightshift-call": str(found["id"]),
            "x-nightshift-digest": made.digest,
            "x-nightshift-agrees": "true" if made.agrees else "false",
        }
        return Response(made.body, headers=headers, media_type="application/json")

    return serving.database.read(read)

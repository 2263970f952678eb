"""A turn's events as they happen."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from api import problems
from api.events import response
from api.injected import Calling, Serving, identifier
from api.openapi import gives
from api.wire.shown import Problem

router = APIRouter(tags=["turns"])
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events, see docs/events.md", "content": {"text/event-stream": {}}},
    204: {"description": "The terminal event was the last one received: nothing will follow"},
    "default": gives(Problem)["default"],
}


@router.get("/v1/turns/{turn}/events", responses=_STREAM, response_class=Response)
async def watch_turn(
    serving: Serving,
    caller: Calling,
    turn: str,
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Follow a turn to its end. `Last-Event-ID` goes on behind that event, or begins with a `snapshot`."""
    id_ = identifier(turn)
    seen = await serving.hub.truth.seen(id_, caller.principal.id)
    if seen is None:
        raise problems.not_found()
    return await response.answer(serving.hub, id_, caller.digest, last_event_id or None, seen)

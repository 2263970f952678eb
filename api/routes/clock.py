"""The test clock: this writes a target, the scheduler alone moves the clock, and the answer comes when it is there."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from api import answers, commands
from api.auth import allow
from api.commands import Answer
from api.injected import Serving, Writing
from api.openapi import accepts, gives
from api.services import Services
from api.wire.asked import ClockAsked
from api.wire.shown import ClockMoved
from shared.errors import Refused, StoreUnavailable
from shared.request import canonical
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.values import Role

router = APIRouter(tags=["test"])
MOST_WAIT_S = 900.0
_LOOK_S = 0.05
TARGET = """
update test_clock set target_s = greatest(target_s, offset_s) + %s, jump = %s returning target_s
"""
STATE = "select offset_s, target_s, clock_now() as now from test_clock"


@router.post("/v1/test/clock", openapi_extra=accepts(ClockAsked), responses=gives(ClockMoved))
async def move_clock(serving: Serving, written: Writing) -> Response:
    """Let time pass in steps of at most 30 s with everything run to rest after each, or at once with `jump`."""
    allow(written.caller, Role.ADMIN)
    asked = written.body(ClockAsked)

    def effect(connection: Connection) -> Answer:
        row = fetch(connection, TARGET, (asked.advance_s, asked.jump))
        return Answer(200, canonical.dump({"target_s": None if row is None else row["target_s"]}))

    answer = await run_in_threadpool(commands.perform, serving, written, effect)
    if answer.status != 200:
        return answer.response()
    serving.ringer.ring("clock")
    return answers.ok(await _arrived(serving, float(canonical.load_object(answer.text)["target_s"])))  # pyright: ignore[reportArgumentType] - written above


async def _arrived(serving: Services, target_s: float) -> ClockMoved:
    loop = asyncio.get_running_loop()
    end = loop.time() + MOST_WAIT_S
    while loop.time() < end and not serving.hub.closing:
        try:
            state: dict[str, Any] = (await serving.asking.rows(STATE))[0]
        except StoreUnavailable:  # a test may well hurt the database while time passes
            state = {"offset_s": -1.0}
        if state["offset_s"] >= target_s - 1e-6:
            return ClockMoved(now=state["now"], offset_s=state["offset_s"], target_s=state["target_s"])
        await asyncio.sleep(_LOOK_S)
    raise Refused(
        "the clock is not there yet: the scheduler moves it, see that one runs", code="clock_slow", status=504
    )

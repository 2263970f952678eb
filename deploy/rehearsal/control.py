"""Owns the control surface under `/rehearsal/`: ledger, scripts, switches and waits for tests and for the stack."""

import asyncio
import hmac
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson

from deploy.rehearsal import ledger
from deploy.rehearsal.foreign_models import model_of
from deploy.rehearsal.http import TOKEN_HEADER, Exchange, HttpRequest
from deploy.rehearsal.loose import Json, is_object
from deploy.rehearsal.reply import WrongScript
from deploy.rehearsal.world import World

PREFIX: Final = "/rehearsal/"
LONGEST_WAIT_S: Final = 60.0
_OF_BROWSERS: Final = frozenset(("origin", "sec-fetch-site", "referer"))
"""Headers that browsers send along and scripts cannot take away; some send only one of them."""


async def handle(world: World, http: HttpRequest, exchange: Exchange) -> None:
    """Answer one control request; what is wrong with it is told as 400 with a sentence."""
    name = f"{http.method} {http.path.removeprefix(PREFIX)}"
    try:
        if not http.headers.keys().isdisjoint(_OF_BROWSERS):
            status, answer = 403, {"error": "not for web pages: a page from anywhere could script the model from there"}
        elif not _may(world, http):
            status, answer = 401, {"error": f"{TOKEN_HEADER}: not the token that NIGHTSHIFT_REHEARSAL_TOKEN gave me"}
        elif name == "GET wait":
            status, answer = await _wait(world, http)
        elif name in _ROUTES:
            status, answer = 200, _ROUTES[name](world, http)
        else:
            status, answer = (
                404,
                {"error": f"{http.method} {http.path} is not here; known are {', '.join(sorted(_ROUTES))}, GET wait"},
            )
    except (WrongScript, ValueError, KeyError, TypeError, OSError) as error:
        status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
    exchange.answer(status, [("content-type", "application/json")], orjson.dumps(answer))


def _may(world: World, http: HttpRequest) -> bool:
    """Whether the caller was told the token. Without it any process of the machine could put words, and tool calls,
    into the model's mouth. A provider that was given none has nobody who may."""
    told = http.headers.get(TOKEN_HEADER, "").encode("latin-1")
    return bool(world.token) and hmac.compare_digest(told, world.token.encode())


def _body(http: HttpRequest) -> Json:
    given = orjson.loads(http.body or b"{}")
    if not is_object(given):
        raise WrongScript("the body should be a JSON object")
    return given


def _calls(world: World, session: str | None) -> list[ledger.Call]:
    return [call for call in world.ledger.calls if session is None or call.session == session]


def _ledger(world: World, http: HttpRequest) -> Json:
    first = int(http.query.get("from", 0))
    calls = [ledger.row(call) for call in _calls(world, http.query.get("session")) if call.index >= first]
    return {"calls": calls, "usd": sum(call["usd"] or 0.0 for call in calls)}


def _in_flight(world: World, http: HttpRequest) -> Json:
    session = http.query.get("session")
    calls = [call for call in world.ledger.in_flight() if session is None or call.session == session]
    return {"calls": [ledger.row(call) for call in calls]}


def _add_script(world: World, http: HttpRequest) -> Json:
    script = world.scripts.add(_body(http))
    return {"script": script.label}


def _drop_scripts(world: World, _: HttpRequest) -> Json:
    world.scripts.clear()
    return {}


def _capture(world: World, http: HttpRequest) -> Json:
    given = _body(http)
    directory = given.get("directory")
    world.capture_headers = bool(given.get("headers", False))
    world.capture_to = None
    if directory is not None:
        path = Path(directory)
        path.mkdir(parents=True, exist_ok=True)
        world.capture_to = path.resolve()
    return {"directory": None if world.capture_to is None else str(world.capture_to)}


def _hold(world: World, http: HttpRequest) -> Json:
    if _body(http).get("hold"):
        world.gate.clear()
    else:
        world.gate.set()
    return {"hold": not world.gate.is_set()}


def _clock(world: World, http: HttpRequest) -> Json:
    world.offset_s = float(_body(http)["offset_s"])
    return {"offset_s": world.offset_s, "now": world.now()}


def _window(world: World, http: HttpRequest) -> Json:
    given = _body(http)
    model = model_of(given["model"])
    if model is None:
        raise KeyError(given["model"])
    if given.get("context") is None:
        world.windows.pop(model.name, None)
    else:
        world.windows[model.name] = int(given["context"])
    return {"model": model.name, "context": world.windows.get(model.name, model.context)}


def _limit(world: World, http: HttpRequest) -> Json:
    given = _body(http)
    asked = given.get("per_minute")
    world.limits.set(None if asked is None else int(asked), str(given.get("way", "bucket")))
    return {"per_minute": world.limits.per_minute, "way": world.limits.way}


def _down(world: World, http: HttpRequest) -> Json:
    given = _body(http)
    asked = given.get("status")
    world.limits.down = None if asked is None else int(asked)
    world.limits.lists = given.get("lists") is True
    return {"status": world.limits.down, "lists": world.limits.lists}


def _reset(world: World, _: HttpRequest) -> Json:
    world.reset()
    return {}


def _health(world: World, _: HttpRequest) -> Json:
    return {
        "status": "ok",
        "calls": len(world.ledger.calls),
        "in_flight": len(world.ledger.in_flight()),
        "cache_entries": len(world.cache),
        "offset_s": world.offset_s,
    }


async def _wait(world: World, http: HttpRequest) -> tuple[int, Json]:
    """Until so many calls have come (`calls`), `ended`, are in flight (`inflight`) or have `begun` to answer."""
    session = http.query.get("session")
    wanted = {key: int(value) for key, value in http.query.items() if key in ("calls", "ended", "inflight", "begun")}
    if not wanted:
        raise ValueError("wait needs calls, ended, inflight or begun")
    deadline = time.monotonic() + min(LONGEST_WAIT_S, float(http.query.get("timeout_s", 10)))
    while True:
        seen = _counts(world, session)
        if all(seen[key] == count if key == "inflight" else seen[key] >= count for key, count in wanted.items()):
            return 200, seen
        left = deadline - time.monotonic()
        if left <= 0:
            return 408, seen
        try:
            await asyncio.wait_for(world.changed.wait(), left)
        except TimeoutError:
            continue


def _counts(world: World, session: str | None) -> Json:
    calls = _calls(world, session)
    return {
        "calls": len(calls),
        "ended": sum(call.ended is not None for call in calls),
        "inflight": sum(call.ended is None for call in calls),
        "begun": sum(call.first_byte is not None for call in calls),
    }


_ROUTES: Final[dict[str, Callable[[World, HttpRequest], Json]]] = {
    "GET ledger": _ledger,
    "GET inflight": _in_flight,
    "POST script": _add_script,
    "DELETE script": _drop_scripts,
    "POST capture": _capture,
    "POST hold": _hold,
    "POST clock": _clock,
    "POST window": _window,
    "POST limit": _limit,
    "POST down": _down,
    "POST reset": _reset,
    "GET health": _health,
}

"""Owns which path is answered by what; and the calls that are neither messages nor control."""

import sys
import traceback
from typing import Any, Final

import orjson

from deploy.rehearsal import answer, control, converse
from deploy.rehearsal.admit import admit, key_of, read_json
from deploy.rehearsal.errors import Refused, error_body
from deploy.rehearsal.foreign import PATHS
from deploy.rehearsal.http import Exchange, HttpRequest
from deploy.rehearsal.models import MODELS, Model
from deploy.rehearsal.speech import BY_WIRE
from deploy.rehearsal.world import World

MODELS_PATH: Final = "/v1/models"


async def route(world: World, http: HttpRequest, exchange: Exchange) -> None:
    """Answer one request. Nothing may escape: a bug here is a 500 with a traceback on stderr, not a dead connection."""
    try:
        if http.path == "/v1/messages" and http.method == "POST":
            await answer.messages(world, http, exchange)
        elif http.path in PATHS and http.method == "POST":
            await answer.messages(world, http, exchange, BY_WIRE[PATHS[http.path]])
        elif http.method == "POST" and (asked := converse.asked(http.path)) is not None:
            await answer.messages(world, http, exchange, BY_WIRE[converse.CONVERSE], asked)
        elif http.path.startswith(control.PREFIX):
            await control.handle(world, http, exchange)
        else:
            _small(world, http, exchange)
    except Exception:  # noqa: BLE001 (the last line of the server: told on stderr, answered as 500)
        traceback.print_exc(file=sys.stderr)
        if not exchange.begun:
            _answer(world, exchange, 500, None, Refused("Internal server error", "api_error"))


def _small(world: World, http: HttpRequest, exchange: Exchange) -> None:
    if world.limits.down is not None and not (world.limits.lists and http.path == MODELS_PATH):
        if world.limits.down:
            down = error_body("api_error", "Service unavailable", world.new_request_id())
            exchange.answer(world.limits.down, [("content-type", "application/json")], orjson.dumps(down))
        else:
            exchange.cut()
        return
    try:
        found = _find(world, http)
    except Refused as refusal:
        _answer(world, exchange, refusal.status, None, refusal)
    else:
        _answer(world, exchange, 200, found, None)


def _find(world: World, http: HttpRequest) -> dict[str, Any]:
    key = key_of(http)
    if http.path == "/v1/messages/count_tokens" and http.method == "POST":
        admitted = admit(http, read_json(http), key, world.windows, counting=True)
        return {"input_tokens": admitted.prefix.total}
    if http.method == "GET" and http.path == MODELS_PATH:
        data = [_model(model) for model in MODELS.values()]
        return {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
    if http.method == "GET" and http.path.startswith(f"{MODELS_PATH}/"):
        name = http.path.removeprefix(f"{MODELS_PATH}/")
        if name in MODELS:
            return _model(MODELS[name])
        raise Refused(f"model: {name}", "not_found_error")
    raise Refused("Not Found", "not_found_error")


def _model(model: Model) -> dict[str, Any]:
    return {
        "id": model.name,
        "type": "model",
        "display_name": model.display,
        "created_at": model.created,
        "max_input_tokens": model.context,
        "max_tokens": model.max_output,
    }


def _answer(
    world: World, exchange: Exchange, status: int, found: dict[str, Any] | None, refusal: Refused | None
) -> None:
    request_id = world.new_request_id()
    body = found if refusal is None else error_body(refusal.kind, refusal.message, request_id)
    exchange.answer(status, [("content-type", "application/json"), ("request-id", request_id)], orjson.dumps(body))

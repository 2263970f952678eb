"""Owns the way of a request from bytes to something that may be answered: read, checked, laid out as a prefix."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import orjson

from deploy.rehearsal import prefix as prefixes
from deploy.rehearsal import seen
from deploy.rehearsal.checks import limits, marks, pairing, reasoning, shape
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.http import HttpRequest
from deploy.rehearsal.loose import Json, is_object, object_or_empty
from deploy.rehearsal.models import MODELS, Model
from deploy.rehearsal.prefix import Prefix

TOO_LARGE: Final = "Request exceeds the maximum size"


@dataclass(frozen=True, slots=True)
class Admitted:
    request: Json
    model: Model
    prefix: Prefix
    # What must agree, besides the blocks, for a cached prefix to be read: by section.
    contexts: tuple[bytes, bytes, bytes]


def read_json(http: HttpRequest) -> Any:
    """The body as JSON; a lone surrogate is refused, as the service does."""
    if http.too_large:
        raise Refused(TOO_LARGE, "request_too_large")
    try:
        return orjson.loads(http.body)
    except orjson.JSONDecodeError as error:
        raise Refused(f"The request body is not valid JSON: {error}") from None


def key_of(http: HttpRequest) -> str:
    """The caller's key; Refused when there is none, or when it says that it is invalid."""
    key = http.headers.get("x-api-key") or http.headers.get("api-key") or ""
    if not key:
        scheme, _, value = http.headers.get("authorization", "").partition(" ")
        key = value.strip() if scheme.lower() == "bearer" else ""
        if scheme == "AWS4-HMAC-SHA256":  # who signed: the name of an access key; signatures are not checked here
            key = value.partition("Credential=")[2].partition("/")[0]
    if not key:
        raise Refused("x-api-key header is required", "authentication_error")
    if key.startswith("invalid"):
        raise Refused("invalid x-api-key", "authentication_error")
    return key


def version_of(http: HttpRequest) -> str:
    version = http.headers.get("anthropic-version", "")
    if not version:
        raise Refused("anthropic-version: header is required")
    return version


def session_of(request: Any) -> str | None:
    """The opaque user of a request that may yet turn out to be wrong."""
    if is_object(request):
        given: Json = request
        metadata: Any = given.get("metadata")
        if is_object(metadata):
            known: Json = metadata
            user: Any = known.get("user_id")
            return user if isinstance(user, str) else None
        of_bedrock: Any = object_or_empty(given.get("requestMetadata")).get("session")
        foreign: Any = given.get("user", of_bedrock)
        return foreign if isinstance(foreign, str) else None
    return None


def model_of(request: Json) -> Model:
    model = MODELS.get(request["model"])
    if model is None:
        raise Refused(f"model: {request['model']}", "not_found_error")
    return model


def admit(http: HttpRequest, parsed: Any, key: str, windows: dict[str, int], counting: bool = False) -> Admitted:
    """The request if the service would take it, else Refused. `counting` leaves out what only a reply needs."""
    version = version_of(http)
    betas = frozenset(http.headers.get("anthropic-beta", "").replace(" ", "").split(","))
    request = shape.check(parsed)
    model = model_of(request)
    messages = [seen.know(index, message) for index, message in enumerate(request["messages"])]
    if not counting:
        limits.check(request, messages, model, version)
    pairing.check(messages, model)
    pairing.check_end(request["messages"][-1], model)
    automatic = marks.check(request, messages)
    prefix = prefixes.build(http.body, request, messages, model, automatic)
    dropped = reasoning.check(request, messages, prefix, model, betas) | reasoning.left_out(messages, model)
    if dropped:
        prefix = prefixes.build(http.body, request, messages, model, automatic, dropped)
    if not counting:
        limits.check_window(prefix.total, windows.get(model.name, model.context))
    has_image = any(message.has_image for message in messages)
    return Admitted(request, model, prefix, _contexts(request, model, key, has_image))


def _contexts(request: Json, model: Model, key: str, has_image: bool) -> tuple[bytes, bytes, bytes]:
    """An explicit default counts like an omitted parameter."""
    root = f"{model.name}\0{key}".encode()
    system = root + orjson.dumps([request.get("speed")])
    choice: Json = object_or_empty(request.get("tool_choice")) or {"type": "auto"}
    thinking: Json | None = request.get("thinking")
    if thinking is not None and thinking["type"] == "disabled":
        thinking = None
    effort: Any = object_or_empty(request.get("output_config")).get("effort")
    messages = system + orjson.dumps(
        [
            choice.get("type"),
            choice.get("name"),
            bool(choice.get("disable_parallel_tool_use")),
            has_image,
            thinking and [thinking["type"], thinking.get("budget_tokens")],
            effort,
        ]
    )
    return _hash(root), _hash(system), _hash(messages)


def _hash(context: bytes) -> bytes:
    return blake2b(context, digest_size=16).digest()

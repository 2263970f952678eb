"""Every error of the HTTP surface as problem+json (RFC 9457): a stable `code` and a sentence a person can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shared.errors import NightshiftError, Refused, StoreUnavailable
from shared.memory import MemoryChanged
from shared.request import canonical
from shared.store.cancel import TurnOver

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1
log = structlog.get_logger("api")

_CODES: Mapping[int, tuple[str, str]] = {
    404: ("not_found", "there is nothing at this address that you may see"),
    405: ("method_not_allowed", "this address does not take that method"),
}


class InputInvalid(NightshiftError):
    """A body that does not fit its model; `errors` names each field and its fault."""

    code = "input_invalid"
    status = 422

    def __init__(self, errors: list[dict[str, str]]) -> None:
        shown = "; ".join(f"{one['field']}: {one['fault']}" for one in errors[:3])
        super().__init__(shown)
        self.errors = errors


def not_found() -> Refused:
    """The one answer for an unknown id and for what the caller may not see: the two must look alike."""
    return Refused(_CODES[404][1], code="not_found", status=404)


def invalid(field: str, fault: str, *, code: str = "input_invalid", status: int = 422) -> Refused:
    """A refusal that names one field of the request and its fault."""
    return Refused(f"{field}: {fault}", code=code, status=status)


def body(
    status: int,
    code: str,
    detail: str,
    errors: Sequence[Mapping[str, str]] = (),
    more: Mapping[str, object] | None = None,
) -> str:
    """The problem's JSON text."""
    found: dict[str, Any] = {
        "type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code, "detail": detail,
    }  # fmt: skip
    if errors:
        found["errors"] = list(errors)
    return canonical.dump({**found, **(more or {})})


def more(error: NightshiftError) -> Mapping[str, object] | None:
    """What an error tells beside its sentence: who comes too late to stop a turn gets what it ended with; who rewrites
    a memory that has changed, what is there now."""
    match error:
        case TurnOver():
            return {"turn_status": error.ended, "answer": error.answer}
        case MemoryChanged():
            return {"revision": error.head.revision, "entries": list(error.head.entries)}
        case _:
            return None


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
) -> Response:
    """The answer that says what went wrong."""
    extra = dict(headers or {})
    if status in {429, 503}:
        extra.setdefault("retry-after", str(RETRY_AFTER_S))
    if status == 408:
        extra.setdefault("connection", "close")  # what may still come of the body belongs to no request
    if status == 401:
        extra.setdefault("www-authenticate", "Bearer")
    return Response(body(status, code, detail, errors, more), status, extra, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Hand every kind of error to its sentence. What nobody foresaw is logged and says only that it happened."""

    async def known(_: Request, error: Exception) -> Response:
        assert isinstance(error, NightshiftError)
        if error.status >= 500 and not isinstance(error, StoreUnavailable):
            log.error("api.failed", code=error.code, error=error.message)
        errors = error.errors if isinstance(error, InputInvalid) else ()
        return problem(error.status, error.code, error.message, errors=errors, more=more(error))

    async def wrong_query(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return faults(error.errors())

    async def plain(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code, detail = _CODES.get(error.status_code, ("http_error", str(error.detail)))
        return problem(error.status_code, code, detail, headers=error.headers)

    async def unforeseen(request: Request, error: Exception) -> Response:
        log.error("api.unforeseen", path=request.url.path, error=type(error).__name__)
        return problem(500, "internal_error", "something went wrong here that is not your fault: try again, or tell us")

    app.add_exception_handler(NightshiftError, known)
    app.add_exception_handler(RequestValidationError, wrong_query)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, unforeseen)


_FAULTS = {
    "uuid_parsing": "not an id; an id looks like 01a22cec-d06a-73c1-9932-f8f9bcecffa5",
    "extra_forbidden": "not known here",
}
"""By pydantic's type of an error, where its own words say little to a person."""


def faults(errors: Sequence[Any]) -> Response:
    """422 for what a model or a parameter refused: each field with its fault; values are not repeated."""
    named = faults_of(errors)
    detail = "; ".join(f"{one['field']}: {one['fault']}" for one in named[:3])
    return problem(422, "input_invalid", detail or "the request is not valid", errors=named)


def faults_of(errors: Sequence[Any]) -> list[dict[str, str]]:
    """Each field with its fault, as pydantic found them; twenty at most."""
    return [{"field": field_of(one["loc"]), "fault": _FAULTS.get(one["type"], str(one["msg"]))} for one in errors[:20]]


def field_of(location: Sequence[object]) -> str:
    parts = [str(part) for part in location if part not in {"body", "query", "path"}]
    return ".".join(parts) or "body"

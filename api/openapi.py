"""What the API says of itself: every route with its bodies, its errors and how to sign in."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from api.wire.shown import Problem

_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    "Runs LLM agents as queue work. Errors are application/problem+json with a stable `code`. `Idempotency-Key` is"
    " honoured on every POST for 24 hours. Dollars are numbers; null is an unknown cost, never zero."
)
_asked: dict[str, type[BaseModel]] = {}


def accepts(model: type[BaseModel]) -> dict[str, Any]:
    """Documents a body that is parsed by hand (api/bodies.py says why)."""
    _asked[model.__name__] = model
    required = any(field.is_required() for field in model.model_fields.values())
    schema = {"$ref": _REF.format(model=model.__name__)}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def gives(model: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Documents an answer and the problems that any route may answer with."""
    return {status: {"model": model}, "default": {"model": Problem, "description": "A problem (RFC 9457)"}}


def install(app: FastAPI) -> None:
    """Answer /openapi.json with the whole of it, built once."""

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app)
        return app.openapi_schema

    app.openapi = whole


def _build(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name, model in _asked.items():
        schema = model.model_json_schema(ref_template=_REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[name] = schema
    for kept in ("HTTPValidationError", "ValidationError"):
        schemas.pop(kept, None)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _finish(path, method, operation)
    return document


def _finish(path: str, method: str, operation: dict[str, Any]) -> None:
    responses: dict[str, Any] = operation["responses"]
    responses.pop("422", None)
    if "default" in responses:
        content = responses["default"]["content"]
        responses["default"]["content"] = {"application/problem+json": next(iter(content.values()))}
    if method == "post" and path.startswith("/v1/"):
        operation.setdefault("parameters", []).append(
            {
                "name": "Idempotency-Key", "in": "header", "required": False,
                "schema": {"type": "string", "maxLength": 150},
                "description": "A POST repeated with the same key answers as the first did.",
            }
        )  # fmt: skip

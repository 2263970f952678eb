"""Answers as JSON. Dumped by us, since stored text may hold escaped surrogates that other encoders refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from shared.request import canonical


def text(value: BaseModel | Mapping[str, Any]) -> str:
    """The JSON text of a model, or of a value that is JSON already."""
    return canonical.dump(value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value)


def ok(value: BaseModel | Mapping[str, Any], status: int = 200) -> Response:
    return Response(text(value), status, media_type="application/json")


def spliced(items: Sequence[str], **rest: Any) -> Response:
    """A page whose items are JSON texts already: `{"items": [...], …rest}`."""
    tail = canonical.dump(rest)[1:]
    joined = ",".join(items)
    return Response(f'{{"items":[{joined}]{"," if rest else ""}{tail}', media_type="application/json")


def dollars(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def bill(spent: Decimal, unknown: bool) -> float | None:
    """What something cost: null where any part of it is unknown, never a partial sum."""
    return None if unknown else float(spent)

"""What a handler asks for by type: the services, the caller, a seat in the thread pool, a POST as it came."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, TypeVar, cast
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from api import bodies, problems
from api.auth import Caller, allow
from api.services import Services
from shared.errors import Refused
from shared.values import Role

M = TypeVar("M", bound=BaseModel)
bearer = HTTPBearer(auto_error=False, description="A token of a principal of this team")
"""Only documents the scheme: `Auth` reads the header, since its refusals are ours."""


def services_of(request: Request) -> Services:
    return cast("Services", request.app.state.services)


async def _caller(request: Request, _: Annotated[object, Depends(bearer)]) -> Caller:
    return await services_of(request).auth.caller(request)


async def _reader(request: Request, caller: Annotated[Caller, Depends(_caller)]) -> AsyncGenerator[Caller]:
    async with services_of(request).seats.take():
        yield caller


@dataclass(frozen=True, slots=True)
class Written:
    """A request that changes something, with its body unparsed. `key` is the client's Idempotency-Key."""

    caller: Caller
    route: str
    key: str | None
    raw: bytes

    def body(self, model: type[M]) -> M:
        return bodies.parse(self.raw, model)


async def _writer(request: Request, caller: Annotated[Caller, Depends(_caller)]) -> AsyncGenerator[Written]:
    allow(caller, Role.MEMBER)
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= 150 and key.isprintable()):
        raise Refused("Idempotency-Key: 1 to 150 printable characters", code="idempotency_key_invalid", status=422)
    raw = await bodies.read(request)
    async with services_of(request).seats.take():
        yield Written(caller, f"{request.method} {request.url.path}", key, raw)


def identifier(text: str) -> UUID:
    """The id in a path. What is not one is as unknown as any other unknown id."""
    try:
        return UUID(text)
    except ValueError as error:
        raise problems.not_found() from error


Serving = Annotated[Services, Depends(services_of)]
Calling = Annotated[Caller, Depends(_caller)]
"""For async handlers: no seat is taken."""
Reading = Annotated[Caller, Depends(_reader, scope="function")]
Writing = Annotated[Written, Depends(_writer, scope="function")]

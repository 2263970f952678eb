"""Tokens that were looked up are remembered within a bound: whoever tries made-up ones fills nothing."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from starlette.requests import Request

from api.asking import Asking
from api.auth import Auth
from shared.errors import Refused


class Nobody:
    """A database that knows no token."""

    async def rows(self, query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        del query, values
        return []


def test_made_up_tokens_are_remembered_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.auth.MOST_REMEMBERED", 10)
    auth = Auth(cast("Asking", Nobody()))

    async def ask() -> None:
        for number in range(35):
            headers = [(b"authorization", f"Bearer made-up-{number}".encode())]
            with pytest.raises(Refused, match="not known"):
                await auth.caller(Request({"type": "http", "headers": headers}))

    asyncio.run(ask())
    assert [len(cast("dict[object, object]", one)) for one in vars(auth).values() if isinstance(one, dict)] == [5, 0]

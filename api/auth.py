"""Who is calling: a bearer token to a principal, by digest. The invariant: a revoked token is refused within a second.

Asked on the event loop, once a token and second: a thousand viewers that arrive together with one token cost one read.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from starlette.requests import Request

from api.asking import Asking
from shared.errors import Refused
from shared.store.principals import Principal, token_digest
from shared.values import ROLE_RANK, PrincipalKind, Role

REMEMBERED_S = 1.0
MOST_REMEMBERED = 10_000
FIND = """
select p.id, p.name, p.kind, p.role from tokens t join principals p on p.id = t.principal
where t.digest = %(digest)s and t.revoked_at is null and p.disabled_at is null
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """`digest` is the token's, by which a stream learns that it was revoked."""

    principal: Principal
    digest: bytes


class Auth:
    """Callers by token, remembered for a second."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._known: dict[bytes, tuple[float, Principal | None]] = {}
        self._underway: dict[bytes, asyncio.Task[Principal | None]] = {}

    async def caller(self, request: Request) -> Caller:
        """The caller of a request. Raises Refused `token_missing` or `token_invalid` (401)."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Refused(
                "send a token in the header 'Authorization: Bearer …' (`nightshift tokens add` makes one)",
                code="token_missing", status=401,
            )  # fmt: skip
        digest = token_digest(token)
        principal = await self._find(digest)
        if principal is None:
            raise Refused("this token is not known, or it was revoked", code="token_invalid", status=401)
        return Caller(principal, digest)

    async def _find(self, digest: bytes) -> Principal | None:
        now = time.monotonic()
        known = self._known.get(digest)
        if known is not None and now - known[0] < REMEMBERED_S:
            return known[1]
        task = self._underway.get(digest)
        if task is None:
            task = asyncio.create_task(self._ask(digest))
            self._underway[digest] = task
            task.add_done_callback(lambda _: self._underway.pop(digest, None))
        return await asyncio.shield(task)  # one caller that hangs up must not cancel the others' answer

    def forget(self, digests: set[bytes]) -> None:
        """These are known to be revoked: ask again at once."""
        for digest in digests:
            self._known.pop(digest, None)

    async def _ask(self, digest: bytes) -> Principal | None:
        asked = time.monotonic()
        rows = await self._asking.rows(FIND, {"digest": digest})
        principal = None
        if rows:
            row = rows[0]
            principal = Principal(row["id"], row["name"], PrincipalKind(row["kind"]), Role(row["role"]))
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[digest] = (asked, principal)
        return principal


def allow(caller: Caller, least: Role) -> None:
    """Raises Refused `role_insufficient` (403) where the caller's role is below `least`."""
    if ROLE_RANK[caller.principal.role] < ROLE_RANK[least]:
        raise Refused(
            f"this needs the role {least}; yours is {caller.principal.role}: ask an admin",
            code="role_insufficient", status=403,
        )  # fmt: skip

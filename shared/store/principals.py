"""Who acts: principals and their bearer tokens, stored as SHA-256 digests only."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from shared.ids import uuid7
from shared.store.pool import Connection
from shared.values import PrincipalKind, Role

TOKEN_PREFIX = "ns_"  # noqa: S105 - what a token begins with, so that a scanner can find a leaked one


@dataclass(frozen=True, slots=True)
class Principal:
    id: UUID
    name: str
    kind: PrincipalKind
    role: Role


def new_token() -> str:
    """A fresh bearer token: 256 random bits. It is shown once; only its digest is stored."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def token_digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


FIND_PRINCIPAL = """
select p.id, p.name, p.kind, p.role from tokens t join principals p on p.id = t.principal
where t.digest = %s and t.revoked_at is null and p.disabled_at is null
"""


def find_by_token(connection: Connection, token: str) -> Principal | None:
    """Whose token this is, or None: revoked, disabled and unknown look alike."""
    row = connection.execute(FIND_PRINCIPAL, (token_digest(token),)).fetchone()
    return Principal(row[0], row[1], PrincipalKind(row[2]), Role(row[3])) if row else None


def ensure_principal(connection: Connection, name: str, kind: PrincipalKind, role: Role) -> UUID:
    """The id of the principal of that name, made if it is not there. Its role is set to `role`."""
    row = connection.execute(
        "insert into principals (id, name, kind, role) values (%s, %s, %s, %s) "
        "on conflict (name) do update set role = excluded.role returning id",
        (uuid7(), name, kind, role),
    ).fetchone()
    if row is None:
        raise RuntimeError("insert … returning gave no row")
    return row[0]


def add_token(connection: Connection, principal: UUID, token: str, label: str) -> UUID:
    """Store a token's digest; a token that is there already keeps its row. Returns the token's public id."""
    row = connection.execute(
        "insert into tokens (digest, id, principal, label) values (%s, %s, %s, %s) "
        "on conflict (digest) do update set label = excluded.label returning id",
        (token_digest(token), uuid7(), principal, label),
    ).fetchone()
    if row is None:
        raise RuntimeError("insert … returning gave no row")
    return row[0]


def revoke_token(connection: Connection, token_id: UUID) -> bool:
    """Revoke at once; False if there is no such live token."""
    done = connection.execute(
        "update tokens set revoked_at = clock_now() where id = %s and revoked_at is null", (token_id,)
    )
    return done.rowcount == 1


def ensure_admin(connection: Connection, name: str, token: str) -> UUID:
    """The local stack's own admin, with that token."""
    principal = ensure_principal(connection, name, PrincipalKind.PERSON, Role.ADMIN)
    add_token(connection, principal, token, "local stack")
    return principal

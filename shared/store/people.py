"""Who may sign in, changed by an admin: people added, their role and access changed, tokens made and revoked.

The invariants: each change stands in `audit` with it, and there is always an admin who can sign in. The caller is
inside a transaction. Only a token's digest is stored.
"""

from __future__ import annotations

from uuid import UUID

from shared.errors import Refused
from shared.ids import uuid7
from shared.store import cancel
from shared.store.cancel import Cancelled
from shared.store.pool import Connection
from shared.store.principals import token_digest
from shared.values import PrincipalKind, Role

# Held by whoever may take an admin's access away: two who did it to each other at once would leave none.
_ONE_AT_A_TIME = "select pg_advisory_xact_lock(7231005)"
_ADMINS = """
select 1 from principals p where p.role = 'admin' and p.disabled_at is null and exists (
  select 1 from tokens t where t.principal = p.id and t.revoked_at is null) limit 1
"""


def add(connection: Connection, by: UUID, name: str, kind: PrincipalKind, role: Role) -> UUID:
    """Raises Refused `name_taken` (409)."""
    row = connection.execute(
        "insert into principals (id, name, kind, role) values (%s, %s, %s, %s) on conflict (name) do nothing"
        " returning id",
        (uuid7(), name, kind, role),
    ).fetchone()
    if row is None:
        raise Refused("somebody has this name already: take another", code="name_taken", status=409)
    person: UUID = row[0]
    _audit(connection, by, "people.added", person, f"{kind}, role {role}")
    return person


def change(connection: Connection, by: UUID, person: UUID, role: Role | None, disabled: bool | None) -> None:
    """Raises Refused `last_admin` (409). The person must be there."""
    connection.execute(_ONE_AT_A_TIME)
    if role is not None:
        connection.execute("update principals set role = %s where id = %s", (role, person))
        _audit(connection, by, "people.role", person, f"role {role}")
    if disabled is not None:
        connection.execute(
            "update principals set disabled_at = case when %s then coalesce(disabled_at, clock_now()) end"
            " where id = %s",
            (disabled, person),
        )
        _audit(connection, by, "people.disabled" if disabled else "people.enabled", person, "")
    _keep_an_admin(connection)


def cancel_of_disabled(connection: Connection, turn: UUID, by: UUID | None) -> Cancelled:
    """A queued turn of somebody who was disabled, which no claim takes any more. Raises what `cancel.cancel` raises."""
    found = cancel.cancel(connection, turn, by)
    _audit(connection, by, "turn.cancelled", turn, "who asked for it is disabled")
    return found


def add_token(connection: Connection, by: UUID, person: UUID, token: str, label: str) -> UUID:
    """Raises Refused `person_disabled` (409). The person must be there."""
    row = connection.execute(
        "insert into tokens (digest, id, principal, label)"
        " select %s, %s, id, %s from principals where id = %s and disabled_at is null returning id",
        (token_digest(token), uuid7(), label, person),
    ).fetchone()
    if row is None:
        raise Refused("this person is disabled: enable them first", code="person_disabled", status=409)
    _audit(connection, by, "tokens.added", row[0], f"for {person}")
    return row[0]


def revoke_token(connection: Connection, by: UUID, token: UUID) -> None:
    """A token that is revoked already stays so. Raises Refused `last_admin` (409)."""
    connection.execute(_ONE_AT_A_TIME)
    done = connection.execute(
        "update tokens set revoked_at = clock_now() where id = %s and revoked_at is null", (token,)
    )
    if done.rowcount:
        _audit(connection, by, "tokens.revoked", token, "")
        _keep_an_admin(connection)


def _keep_an_admin(connection: Connection) -> None:
    if connection.execute(_ADMINS).fetchone() is None:
        raise Refused("no admin would be left who can sign in: make another one first", code="last_admin", status=409)


def _audit(connection: Connection, by: UUID | None, action: str, subject: UUID, detail: str) -> None:
    connection.execute(
        "insert into audit (principal, action, subject, detail) values (%s, %s, %s, %s)",
        (by, action, str(subject), detail),
    )

"""Grants as they are shown: one's own, and to those who may decide, everybody's; of a session that one may not see
nothing but that there is a grant."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.problems import not_found
from api.visible import VISIBLE
from api.wire.gate import Grant
from shared.store.pool import Connection
from shared.store.principals import Principal
from shared.values import ROLE_RANK, Role

_COLUMNS: LiteralString = (
    """
select g.id, g.scope, p.name as principal, case when s.id is null or """
    + VISIBLE
    + """ then g.session end as session_id, g.patterns, g.approval, b.name as granted_by, g.note, g.created_at,
  g.expires_at, g.revoked_at, r.name as revoked_by,
  g.revoked_at is null and (g.expires_at is null or g.expires_at > clock_now()) and b.disabled_at is null as stands
from grants g join principals b on b.id = g.granted_by left join principals p on p.id = g.principal
left join principals r on r.id = g.revoked_by left join sessions s on s.id = g.session
where (%(all)s or g.principal = %(who)s or (g.scope = 'bypass' and s.owner = %(who)s))
"""
)
_PAGE = (
    _COLUMNS
    + " and (%(ended)s or g.revoked_at is null) order by g.created_at desc, g.id limit %(limit)s offset %(skip)s"
)
_ONE = _COLUMNS + " and g.id = %(grant)s"


def page(connection: Connection, who: Principal, skip: int, limit: int, *, ended: bool) -> list[Grant]:
    """Newest first; those that were revoked too where `ended`."""
    values = _who(who) | {"ended": ended, "limit": limit, "skip": skip}
    return [_shown(row) for row in connection.cursor(row_factory=dict_row).execute(_PAGE, values)]


def find(connection: Connection, grant: UUID, who: Principal) -> Grant:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(_ONE, _who(who) | {"grant": grant}).fetchone()
    if row is None:
        raise not_found()
    return _shown(row)


def _who(who: Principal) -> dict[str, Any]:
    return {"who": who.id, "all": ROLE_RANK[who.role] >= ROLE_RANK[Role.APPROVER]}


def _shown(row: DictRow) -> Grant:
    return Grant.model_validate(row)

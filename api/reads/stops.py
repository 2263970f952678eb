"""Stops as an admin reads them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.problems import not_found
from api.wire.shown import Stop
from shared.errors import Refused
from shared.store.pool import Connection

_COLUMNS = """
select x.id, x.scope, x.subject, coalesce(who.name, j.name, x.subject) as name, x.cancel, x.note, p.name as placed_by,
  x.created_at, x.lifted_at, l.name as lifted_by
from stops x join principals p on p.id = x.placed_by left join principals l on l.id = x.lifted_by
left join principals who on x.scope = 'person' and who.id::text = x.subject
left join jobs j on x.scope = 'job' and j.id::text = x.subject
"""
_PAGE = _COLUMNS + " where %(lifted)s or x.lifted_at is null order by x.seq desc limit %(limit)s offset %(skip)s"
_ONE = _COLUMNS + " where x.id = %(stop)s"
_PERSON = """
select id from principals where id::text = %(name)s or name = %(name)s order by id::text = %(name)s desc limit 1
"""
_JOB = "select id from jobs where id::text = %(name)s or name = %(name)s order by id::text = %(name)s desc limit 1"


def page(connection: Connection, skip: int, limit: int, *, lifted: bool) -> list[Stop]:
    """Newest first; those that were lifted too where `lifted`."""
    values: dict[str, Any] = {"lifted": lifted, "limit": limit, "skip": skip}
    rows = connection.cursor(row_factory=dict_row).execute(_PAGE, values).fetchall()
    return [_shown(row) for row in rows]


def find(connection: Connection, stop: UUID) -> Stop:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(_ONE, {"stop": stop}).fetchone()
    if row is None:
        raise not_found()
    return _shown(row)


def subject(connection: Connection, scope: str, given: str | None) -> str | None:
    """What the rows know the subject by. Raises Refused `subject_missing`, `subject_needless`, `not_found`."""
    if scope == "fleet":
        if given is not None:
            raise Refused("the whole fleet has no subject: leave it out", code="subject_needless", status=422)
        return None
    if given is None:
        raise Refused(f"say which {scope} is to stop", code="subject_missing", status=422)
    if scope in ("profile", "tool"):
        return given
    cursor = connection.cursor(row_factory=dict_row)
    row = cursor.execute(_PERSON if scope == "person" else _JOB, {"name": given}).fetchone()
    if row is None:
        raise Refused(f"there is no {scope} '{given}': give an id or a name", code="not_found", status=404)
    return str(row["id"])


def _shown(row: DictRow) -> Stop:
    return Stop.model_validate(row)

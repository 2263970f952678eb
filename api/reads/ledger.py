"""Money and tokens, added up. Unknown costs are counted, never taken for zero; what is reserved is not yet spent.

A caller sees the calls of sessions that they may see. An admin sees everyone's sums, but of others' private sessions
neither ids nor titles.
"""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.visible import VISIBLE
from api.wire.money import UsageRow
from api.wire.shown import LedgerRow, Tokens
from shared.store.pool import Connection


class By(StrEnum):
    DAY = "day"
    PRINCIPAL = "principal"
    SESSION = "session"
    JOB = "job"
    MODEL = "model"
    PROVIDER = "provider"
    PURPOSE = "purpose"


MOST_ROWS = 1_000
_GROUPS: dict[By, tuple[LiteralString, LiteralString]] = {
    By.DAY: ("to_char(c.created_at at time zone %(zone)s, 'YYYY-MM-DD')", "min('')"),
    By.PRINCIPAL: ("t.requested_by::text", "min(pr.name)"),
    By.SESSION: (
        "case when x.seen then s.id::text end",
        "min(case when x.seen then s.title else 'private sessions of others' end)",
    ),
    By.JOB: ("j.id::text", "coalesce(min(j.name), 'not of a job')"),
    By.MODEL: ("c.model", "min('')"),
    By.PROVIDER: ("c.provider", "min('')"),
    By.PURPOSE: ("c.purpose", "min('')"),
}
"""The key of each grouping, and its label."""
_SUMS: LiteralString = """
  count(*) as calls,
  count(*) filter (where c.status = 'reserved') as open_calls,
  count(*) filter (where c.cost_usd is null and c.status in ('settled', 'cut', 'lost')) as unknown_calls,
  count(*) filter (where c.cost_assumed) as assumed_calls,
  coalesce(sum(c.cost_usd), 0) as known_usd,
  coalesce(sum(c.reserved_usd) filter (where c.status = 'reserved'), 0) as reserved_usd,
  coalesce(sum(c.input_tokens), 0)::bigint as input, coalesce(sum(c.output_tokens), 0)::bigint as output,
  coalesce(sum(c.cache_read_tokens), 0)::bigint as cache_read,
  coalesce(sum(c.cache_write_5m_tokens), 0)::bigint as cache_write_5m,
  coalesce(sum(c.cache_write_1h_tokens), 0)::bigint as cache_write_1h
"""
_FROM: LiteralString = (
    """
from calls c
join turns t on t.id = c.turn
join sessions s on s.id = c.session
join principals pr on pr.id = t.requested_by
left join ticks k on k.turn = t.id
left join jobs j on j.id = k.job
cross join lateral (select """
    + VISIBLE
    + """ as seen) x
where (x.seen or %(everyone)s)
  and (%(since)s::timestamptz is null or c.created_at >= %(since)s)
  and (%(until)s::timestamptz is null or c.created_at < %(until)s)
"""
)


def _statement(by: By) -> LiteralString:
    key, label = _GROUPS[by]
    return (
        "select " + key + " as key, " + label + " as label," + _SUMS + _FROM + " group by 1 order by 1 desc limit 1000"
    )


_TOTAL: LiteralString = "select null as key, 'total' as label," + _SUMS + _FROM
STATEMENTS: dict[By, LiteralString] = {by: _statement(by) for by in By}


def add_up(
    connection: Connection,
    by: By,
    *,
    who: UUID,
    everyone: bool,
    zone: str,
    since: datetime | None,
    until: datetime | None,
) -> tuple[list[LedgerRow], LedgerRow]:
    """The rows of one grouping, newest or last key first, and the sum of everything."""
    values: dict[str, Any] = {"who": who, "everyone": everyone, "zone": zone, "since": since, "until": until}
    cursor = connection.cursor(row_factory=dict_row)
    rows = [_shown(row) for row in cursor.execute(STATEMENTS[by], values).fetchall()]
    total = cursor.execute(_TOTAL, values).fetchone()
    assert total is not None, "an aggregate without groups has one row"
    return rows, _shown(total)


_USAGE: LiteralString = (
    "select to_char(c.created_at at time zone 'UTC', 'YYYY-MM-DD') as day, c.provider, c.model,"
    + _SUMS
    + """from calls c
where c.created_at >= %(since)s::date::timestamp at time zone 'UTC'
  and c.created_at < (%(until)s::date + 1)::timestamp at time zone 'UTC'
group by 1, 2, 3 order by 1, 2, 3 limit 10000
"""
)


def usage(connection: Connection, since: date, until: date) -> list[UsageRow]:
    """Of every call of these days, both included, in UTC: as providers cut theirs."""
    cursor = connection.cursor(row_factory=dict_row)
    rows = cursor.execute(_USAGE, {"since": since, "until": until}).fetchall()
    return [UsageRow(day=row["day"], provider=row["provider"], model=row["model"], spent=_shown(row)) for row in rows]


def _shown(row: DictRow) -> LedgerRow:
    known = float(row["known_usd"])
    key = row.get("key")
    return LedgerRow(
        key=key,
        label=row.get("label") or key or "",
        calls=row["calls"],
        open_calls=row["open_calls"],
        unknown_calls=row["unknown_calls"],
        assumed_calls=row["assumed_calls"],
        cost_usd=None if row["unknown_calls"] else known,
        known_usd=known,
        reserved_usd=float(row["reserved_usd"]),
        tokens=Tokens(
            input=row["input"],
            output=row["output"],
            cache_read=row["cache_read"],
            cache_write=row["cache_write_5m"] + row["cache_write_1h"],
        ),
        cache_write_5m=row["cache_write_5m"],
        cache_write_1h=row["cache_write_1h"],
    )

"""Shared caps and their windows. A member sees the team's, their own and their jobs'; an admin sees all."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.reads import stops
from api.wire.money import Budget, Scope
from shared.errors import Refused
from shared.store.intake import fetch
from shared.store.pool import Connection

# Each cap; and for a cap of everybody the windows of those that have drawn under it.
_ROWS: LiteralString = """
with r as (select zone, clock_now() as now from budget_rules), caps as (
  select c.scope, c.id, c.period, c.cap_usd, case when c.id <> '*' then budget_window(c.period, r.zone, r.now) end as w
  from budget_caps c, r
  union all
  select b.scope, b.id, c.period, c.cap_usd, b."window" from budget_caps c cross join r
  join budgets b on b.scope = c.scope and b."window" = budget_window(c.period, r.zone, r.now)
  where c.id = '*' and not exists (
    select 1 from budget_caps o where o.scope = c.scope and o.period = c.period and o.id = b.id)
)
select c.scope, c.id, coalesce(p.name, j.name, case c.id when '*' then 'everybody else' else c.id end) as name,
  c.period, c.w as "window",
  case when c.w is not null and c.period <> 'ever' then budget_until(c.period, r.zone, r.now) end as until,
  c.cap_usd, coalesce(b.spent_usd, case when c.w is not null
    then spent_since(c.scope, c.id, budget_since(c.period, r.zone, r.now)) end, 0) + used.usd as spent_usd,
  coalesce(b.reserved_usd, 0) - used.usd as drawn_usd, r.zone
from caps c cross join r
left join budgets b on b.scope = c.scope and b.id = c.id and b."window" = c.w
left join principals p on c.scope = 'person' and p.id::text = c.id
left join jobs j on c.scope = 'job' and j.id::text = c.id
cross join lateral (
  select coalesce(sum(least(greatest(t.spent_usd - d.from_usd, 0), d.amount_usd)), 0) as usd
  from draws d join turns t on t.id = d.turn where d.scope = c.scope and d.id = c.id and d."window" = c.w
) used
where (%(everyone)s or c.scope = 'team' or c.id = '*' or c.scope = 'person' and c.id = %(who)s::text
  or c.scope = 'job' and j.owner = %(who)s::uuid)
order by c.scope desc, c.period, name, c.id
"""
SEEN: LiteralString = _ROWS + " limit 1000"
OWNS_JOB: LiteralString = "select owner = %(who)s as owns from jobs where id = %(job)s and removed_at is null"


def page(connection: Connection, who: UUID, *, everyone: bool) -> list[Budget]:
    rows = connection.cursor(row_factory=dict_row).execute(SEEN, {"who": who, "everyone": everyone}).fetchall()
    return [_shown(row) for row in rows]


def one(connection: Connection, scope: str, subject: str, period: str) -> Budget | None:
    """As an admin sees it; None where no cap of that name stands."""
    rows = page(connection, UUID(int=0), everyone=True)
    return next((row for row in rows if (row.scope, row.subject, row.period) == (scope, subject, period)), None)


def zone(connection: Connection) -> str:
    row = fetch(connection, "select zone from budget_rules", ())
    assert row is not None
    return row["zone"]


def subject(connection: Connection, scope: Scope, given: str) -> str:
    """What the rows know the subject by. Raises Refused `not_found`, `subject_needless`."""
    if scope == "team":
        if given != "team":
            raise Refused("there is one team: its subject is 'team'", code="subject_needless", status=422)
        return given
    return "*" if given == "*" else str(stops.subject(connection, scope, given))


def owns(connection: Connection, job: str, who: UUID) -> bool:
    row = fetch(connection, OWNS_JOB, {"job": job, "who": who})
    return row is not None and row["owns"]


def none(scope: Scope, subject: str, period: str) -> Budget:
    """What is left where the cap was taken away."""
    values: dict[str, Any] = {"scope": scope, "subject": subject, "name": subject, "period": period}
    return Budget(
        **values, window=None, until=None, cap_usd=None, spent_usd=0, drawn_usd=0, left_usd=0, percent=0
    )  # fmt: skip


def _shown(row: DictRow) -> Budget:
    cap: Decimal = row["cap_usd"]
    spent, drawn = row["spent_usd"], max(row["drawn_usd"], Decimal(0))
    until: datetime | None = row["until"]
    return Budget(
        scope=row["scope"], subject=row["id"], name=row["name"], period=row["period"], window=row["window"],
        until=until, cap_usd=float(cap), spent_usd=float(spent), drawn_usd=float(drawn),
        left_usd=float(max(cap - spent - drawn, Decimal(0))), percent=int(spent * 100 / cap) if cap else 100,
    )  # fmt: skip

"""Sessions as they are shown."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.answers import bill, dollars
from api.visible import only
from api.wire.shown import Breaker, Cache, Session
from shared.store.pool import Connection

_SHOWN: LiteralString = """
select s.id, s.seq, s.title, s.owner, p.name as owner_name, s.audience, s.kind, s.profile, s.provider, s.model,
  s.folder, s.cap_usd, s.spent_usd, s.reserved_usd, s.cost_unknown, s.prefix, s.prefix_warm_until, s.ttl,
  s.chain_blocks, s.ineffective_strikes, s.fallback_streak, s.breaker_blocked_at, s.created_at,
  live.id as turn, live.status as live,
  (select count(*) from turns q where q.session = s.id and q.status = 'queued') as queued,
  (select count(*) from tool_runs r where r.session = s.id and r.status = 'unknown') as unknown_effects
from sessions s
join principals p on p.id = s.owner
left join lateral (
  select t.id, t.status from turns t where t.session = s.id and t.status in ('running', 'parked') limit 1
) live on true
"""
ONE = only(_SHOWN + " where s.id = %(session)s")
LIST = only(_SHOWN + " where s.seq < %(before)s", " order by s.seq desc limit %(limit)s")
SEEN = only("select s.prefix, s.last_edit from sessions s where s.id = %(session)s")


def find(connection: Connection, session: UUID, who: UUID) -> Session:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(ONE, {"session": session, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return shown(row, who)


def newest(connection: Connection, who: UUID, before: int, limit: int) -> list[DictRow]:
    values = {"who": who, "before": before, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(LIST, values).fetchall()


def must_see(connection: Connection, session: UUID, who: UUID) -> DictRow:
    """`prefix` and `last_edit` of a session that the caller may see. Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(SEEN, {"session": session, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return row


def shown(row: DictRow, who: UUID) -> Session:
    return Session(
        id=row["id"],
        title=row["title"],
        owner=row["owner_name"],
        mine=row["owner"] == who,
        audience=row["audience"],
        kind=row["kind"],
        profile=row["profile"],
        provider=row["provider"],
        model=row["model"],
        folder=row["folder"],
        status=row["live"] or ("queued" if row["queued"] else "idle"),
        turn_id=row["turn"],
        queued=row["queued"],
        unknown_effects=row["unknown_effects"],
        cost_usd=bill(row["spent_usd"], row["cost_unknown"]),
        known_usd=float(row["spent_usd"]),
        reserved_usd=float(row["reserved_usd"]),
        cap_usd=dollars(row["cap_usd"]),
        cache=Cache(
            warm_until=row["prefix_warm_until"], ttl=row["ttl"], prefix=row["prefix"], blocks=row["chain_blocks"]
        ),
        breaker=Breaker(
            ineffective_strikes=row["ineffective_strikes"],
            fallback_streak=row["fallback_streak"],
            blocked_at=row["breaker_blocked_at"],
        ),
        created_at=row["created_at"],
    )

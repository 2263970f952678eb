"""Sessions as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.answers import bill, dollars
from api.visible import only
from api.wire.cache import Breaker, Cache, Calibration, Meters
from api.wire.shown import Session
from shared.request import estimate
from shared.store.pool import Connection

_SHOWN: LiteralString = """
select s.id, s.seq, s.title, s.titled, s.owner, p.name as owner_name, s.audience, s.kind, s.profile, s.provider,
  s.model, s.folder, s.cap_usd, s.spent_usd, s.reserved_usd, s.cost_unknown, s.prefix, s.prefix_warm_until, s.ttl,
  s.chain_blocks, s.called_at, s.keep_warm, s.warm_pings, s.meter, s.compact_meter, s.junk_tokens, s.wrote_tokens,
  s.hold_5m, s.hold_1h, s.regrow_to, s.ineffective_strikes, s.fallback_streak, s.breaker_blocked_at, s.verdict_due,
  s.created_at, last.estimates, last.billed, live.id as turn, live.status as live,
  (select count(*) from turns q where q.session = s.id and q.status = 'queued') as queued,
  (select count(*) from tool_runs r where r.session = s.id and r.status = 'unknown') as unknown_effects
from sessions s
join principals p on p.id = s.owner
left join lateral (
  select t.id, t.status from turns t where t.session = s.id and t.status in ('running', 'parked') limit 1
) live on true
left join lateral (
  select array_agg(c.estimate order by c.seq desc) as estimates, array_agg(c.billed order by c.seq desc) as billed
  from (
    select seq, estimate, input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens as billed
    from calls where session = s.id and purpose = 'main' and status = 'settled' order by seq desc limit 2
  ) c
) last on true
"""
ONE = only(_SHOWN + " where s.id = %(session)s")
LIST = only(_SHOWN + " where s.seq < %(before)s", " order by s.seq desc limit %(limit)s")
PROVIDER: LiteralString = "select provider from sessions where id = %(session)s"
SEEN = only("select s.prefix, s.last_edit from sessions s where s.id = %(session)s")


By = Literal["first_line", "model", "person"]
_BY: dict[str, By] = {
    "first": "first_line", "asked": "first_line", "kept": "first_line", "model": "model", "person": "person",
}  # fmt: skip
"""By `sessions.titled`, which is null where whoever made the session gave the title, or none."""


def find(connection: Connection, session: UUID, who: UUID) -> Session:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(ONE, {"session": session, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return shown(row, who)


def newest(connection: Connection, who: UUID, before: int, limit: int) -> list[DictRow]:
    values = {"who": who, "before": before, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(LIST, values).fetchall()


def provider(connection: Connection, session: UUID) -> str:
    """Of a session that the caller has just seen."""
    row = connection.cursor(row_factory=dict_row).execute(PROVIDER, {"session": session}).fetchone()
    assert row is not None
    return str(row["provider"])


def must_see(connection: Connection, session: UUID, who: UUID) -> DictRow:
    """`prefix` and `last_edit` of a session that the caller may see. Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(SEEN, {"session": session, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return row


def shown(row: DictRow, who: UUID) -> Session:
    given: By | None = "person" if row["title"] else None
    return Session(
        id=row["id"],
        title=row["title"],
        title_by=_BY[row["titled"]] if row["titled"] else given,
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
            warm_until=row["prefix_warm_until"], ttl=row["ttl"], prefix=row["prefix"], blocks=row["chain_blocks"],
            called_at=row["called_at"], keep_warm=row["keep_warm"], warm_pings=row["warm_pings"],
        ),
        meters=Meters(
            meter=row["meter"], compact_meter=row["compact_meter"], junk_tokens=row["junk_tokens"],
            wrote_tokens=row["wrote_tokens"], hold_5m=row["hold_5m"], hold_1h=row["hold_1h"],
            regrow_to=row["regrow_to"],
        ),
        calibration=calibration(row["estimates"] or [], row["billed"] or []),
        breaker=Breaker(
            ineffective_strikes=row["ineffective_strikes"], fallback_streak=row["fallback_streak"],
            blocked_at=row["breaker_blocked_at"], verdict_due=row["verdict_due"],
        ),
        created_at=row["created_at"],
    )  # fmt: skip


def calibration(estimates: Sequence[int], billed: Sequence[int | None]) -> Calibration:
    """Of the last two answered calls, newest first. Pure."""
    bill = billed[0] if billed else None
    counted = estimates[0] if estimates else None
    corrected = None
    if counted is not None and len(billed) > 1 and billed[1] is not None:
        corrected = estimate.projected((estimates[1], billed[1]), counted)
    return Calibration(
        estimate=counted, corrected=corrected, billed=bill, raw_ratio=_ratio(counted, bill),
        corrected_ratio=_ratio(corrected, bill),
    )  # fmt: skip


def _ratio(counted: int | None, billed: int | None) -> float | None:
    return None if counted is None or not billed else round(counted / billed, 4)

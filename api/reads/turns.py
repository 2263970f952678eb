"""Turns as they are shown."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.answers import bill, dollars
from api.reads import approvals, money
from api.visible import only
from api.wire.shown import Failure, Question, Tokens, Turn, Waiting, Wanted
from shared.store.pool import Connection
from shared.values import TurnStatus

_COLUMNS: LiteralString = """
select t.id, t.seq, t.session, t.status, t.class, p.name as requested_by, t.parked_on, t.parked_at, t.wake_at, t.answer,
  t.error_code, t.error_text, t.steps, t.refunds, t.max_steps, t.spent_usd, t.cost_unknown,
  t.children_usd, t.children_unknown, t.parent, t.cap_usd, t.attempts, t.takeovers,
  t.cancel_requested_at, t.created_at, t.queued_at, t.started_at, t.finished_at, t.deadline_at, t.fence,
  c.input, c.output, c.cache_read, c.cache_write,
  (select count(*) from tool_runs r
    where r.session = t.session and r.turn = t.id and r.status = 'unknown') as unknown_effects,
  exists (select 1 from standing_rewinds w where w.session = t.session
    and (select min(m.id) from messages m where m.turn = t.id) between w.first and w.last) as rewound,
  t.status = 'queued' and exists (
    select 1 from turns e where e.session = t.session
      and (e.status in ('running', 'parked') or (e.status = 'queued' and e.seq < t.seq))) as behind,
"""
_FROM: LiteralString = """
from turns t
join sessions s on s.id = t.session
join principals p on p.id = t.requested_by
cross join lateral (
  select coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output,
    coalesce(sum(cache_read_tokens), 0)::bigint as cache_read,
    coalesce(sum(coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0)), 0)::bigint as cache_write
  from calls where calls.turn = t.id
) c
"""
SHOWN = _COLUMNS + approvals.OF_TURN + "," + money.OF_TURN + _FROM
ONE = only(SHOWN + " where t.id = %(turn)s")
OF_SESSION = only(
    SHOWN + " where t.session = %(session)s and t.seq < %(before)s and t.class <> 'chore'",
    " order by t.seq desc limit %(limit)s",
)
SESSION_OF = only(
    "select t.session, t.class, t.seq from turns t join sessions s on s.id = t.session where t.id = %(turn)s"
)


def find(connection: Connection, turn: UUID, who: UUID) -> Turn:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(ONE, {"turn": turn, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return shown(row)


def of_session(connection: Connection, session: UUID, who: UUID, before: int, limit: int) -> list[DictRow]:
    """The newest turns below `before`, housekeeping left out; rows have `seq`."""
    values = {"session": session, "who": who, "before": before, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(OF_SESSION, values).fetchall()


def session_of(connection: Connection, turn: UUID, who: UUID) -> DictRow:
    """`session` and `class` of a turn that the caller may see. Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(SESSION_OF, {"turn": turn, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return row


def shown(row: DictRow) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session"],
        status=row["status"],
        turn_class=row["class"],
        requested_by=row["requested_by"],
        parked_on=row["parked_on"],
        waiting=_waiting(row),
        answer=row["answer"],
        error=failure(row["error_code"], row["error_text"]),
        steps_used=row["steps"] - row["refunds"],
        steps_refunded=row["refunds"],
        max_steps=row["max_steps"],
        cost_usd=bill(row["spent_usd"], row["cost_unknown"]),
        children_cost_usd=bill(row["children_usd"], row["children_unknown"]),
        parent_id=row["parent"],
        unknown_effects=row["unknown_effects"],
        rewound=row["rewound"],
        cap_usd=dollars(row["cap_usd"]),
        tokens=Tokens(
            input=row["input"], output=row["output"], cache_read=row["cache_read"], cache_write=row["cache_write"]
        ),
        attempts=row["attempts"],
        takeovers=row["takeovers"],
        cancel_requested_at=row["cancel_requested_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        wake_at=row["wake_at"],
        deadline_at=row["deadline_at"],
    )


def failure(code: str | None, message: str | None) -> Failure | None:
    return None if code is None else Failure(code=code, message=message or code)


def _waiting(row: dict[str, Any]) -> Waiting | None:
    match row["status"]:
        case TurnStatus.QUEUED:
            return Waiting(on="session" if row["behind"] else "worker", since=row["queued_at"], until=None)
        case TurnStatus.PARKED:
            return Waiting(
                on=row["parked_on"], since=row["parked_at"], until=row["wake_at"],
                approvals=[Wanted(**one) for one in row["approvals"] or ()],
                questions=[Question(**one) for one in row["questions"] or ()],
                money=money.lacking(row["id"], row["session"], row["short"]),
                budgets=money.lacking_shared(row["short"]),
            )  # fmt: skip
        case _:
            return None

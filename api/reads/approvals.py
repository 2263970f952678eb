"""Requests to allow a tool call, and what a parked turn asks of people. Arguments are the model's words: shown as they
are, within a bound that says so.

A request is seen by whom its session is shown to, and by those who have the role to decide it: these see the call and
who asked for it, and nothing of the session (docs/decisions/0015)."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.visible import VISIBLE
from api.wire.shown import Approval
from shared.store.pool import Connection
from shared.store.principals import Principal
from shared.values import ROLE_RANK, Role

IN_LIST, ALONE = 4_000, 1_000_000
"""Characters of arguments: a page of requests must stay readable, one request is shown whole."""
_OF_SESSION = ("turn_id", "session_id", "session_title")
_SHOWN: LiteralString = """
select a.id, a.turn as turn_id, a.session as session_id, s.title as session_title, a.step, a.ordinal, a.tool, a.digest,
  left(r.arguments, %(most)s) as arguments, length(r.arguments) > %(most)s as cut, a.role, a.four_eyes,
  a.requested_by as requester, q.name as requested_by, a.status, a.created_at, a.expires_at, a.decided_at,
  d.name as decided_by, a.note, a.rule, a.why, case when a.four_eyes then '{}' else a.patterns end as may_cover,
  a.scope, """
_FROM: LiteralString = """ as visible
from approvals a join sessions s on s.id = a.session
left join tool_runs r on r.turn = a.turn and r.step = a.step and r.ordinal = a.ordinal
left join principals q on q.id = a.requested_by
left join principals d on d.id = a.decided_by
"""
_SEEN: LiteralString = " and (a.role = any(%(decides)s::text[]) or " + VISIBLE + ")"
ONE = _SHOWN + VISIBLE + _FROM + " where a.id = %(approval)s" + _SEEN
# The requests of one batch bear one instant: they stand together, in the order of the calls.
LIST = (
    _SHOWN
    + VISIBLE
    + _FROM
    + " where (%(status)s::text is null or a.status = %(status)s)"
    + _SEEN
    + " order by a.created_at desc, a.turn, a.step, a.ordinal limit %(limit)s offset %(skip)s"
)
# What a sleeping turn asks of people, itself or by whatever it waits for, at any depth.
OF_TURN: LiteralString = """
  case when t.status = 'parked' and t.parked_on in ('approval', 'children') then (
    select json_agg(x order by x.turn_id, x.step, x.ordinal) from (
      select a.id, a.turn as turn_id, a.step, a.ordinal, a.tool, left(r.arguments, 2000) as arguments, a.role,
        a.four_eyes, a.rule, a.why, a.created_at, a.expires_at
      from approvals a
      left join tool_runs r on r.turn = a.turn and r.step = a.step and r.ordinal = a.ordinal
      where a.status = 'pending' and a.turn in (
        with recursive below(id) as (
          select t.id
          union all
          select c.id from below b join turns c on c.parent = b.id
          where not c.background and c.status in ('queued', 'running', 'parked')
        )
        select id from below)
      limit 100
    ) x) end as approvals,
  case when t.status = 'parked' and t.parked_on in ('clarify', 'children') then (
    select json_agg(json_build_object('id', q.id, 'turn_id', q.turn, 'text', q.question, 'created_at', q.created_at,
      'expires_at', q.expires_at) order by q.turn, q.step, q.ordinal)
    from questions q where q.status = 'open' and q.turn in (
      with recursive below(id) as (
        select t.id
        union all
        select c.id from below b join turns c on c.parent = b.id
        where not c.background and c.status in ('queued', 'running', 'parked')
      )
      select id from below)) end as questions
"""


def find(connection: Connection, approval: UUID, who: Principal) -> Approval:
    """Raises Refused `not_found`."""
    values = {"approval": approval, "who": who.id, "most": ALONE, "decides": _decides(who)}
    row = connection.cursor(row_factory=dict_row).execute(ONE, values).fetchone()
    if row is None:
        raise problems.not_found()
    return shown(row, who)


def page(connection: Connection, who: Principal, status: str | None, skip: int, limit: int) -> list[Approval]:
    """What was asked in the sessions that `who` may see, or is theirs to decide, newest batch first."""
    values = {
        "who": who.id, "most": IN_LIST, "status": status, "limit": limit, "skip": skip, "decides": _decides(who),
    }  # fmt: skip
    return [shown(row, who) for row in connection.cursor(row_factory=dict_row).execute(LIST, values)]


def _decides(who: Principal) -> list[str]:
    """The demanded roles whose requests this person may decide wherever they were made. A demand below an approver is
    for those who see the session."""
    return [r for r in Role if ROLE_RANK[Role.APPROVER] <= ROLE_RANK[r] <= ROLE_RANK[who.role]]


def shown(row: DictRow, who: Principal) -> Approval:
    enough = ROLE_RANK[who.role] >= ROLE_RANK[Role(row["role"])]
    own = row["four_eyes"] and row["requester"] == who.id
    may = row["status"] == "pending" and enough and not own
    kept: dict[str, Any] = {name: value for name, value in row.items() if name not in {"requester", "cut", "visible"}}
    if not row["visible"]:
        kept |= dict.fromkeys(_OF_SESSION)
    return Approval(**kept, cut=bool(row["cut"]), may_decide=may)

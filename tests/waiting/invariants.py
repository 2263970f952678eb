"""What must hold of the rows of waiting turns: after each step of an interleaving, and once everything is at rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString, cast
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from shared.store.pool import Connection
from tests.ground import Ground
from tests.waiting.held_still import Effects

LIVE = ("queued", "running", "parked")

# Each finds what must not be there.
ALWAYS: dict[str, LiteralString] = {
    "a fence that two have written under": """
        select session, fence from messages group by session, fence having count(distinct turn) > 1
        union all select session, fence from calls where holder is not null
        group by session, fence having count(distinct holder) > 1""",
    "a message under a fence older than that of one before it": """
        select * from (select session, id, fence, max(fence) over (partition by session order by id) as seen
          from messages) m where m.fence < m.seen""",
    "a turn that counts other children than live": """
        select p.id, p.status, p.children_open from turns p where p.children_open <> (
          select count(*) from turns c where c.parent = p.id and not c.background
            and c.status in ('queued', 'running', 'parked'))""",
    "a turn that sleeps for a reason that is gone": """
        select t.id, t.parked_on from turns t where t.status = 'parked' and not case t.parked_on
          when 'approval' then exists (select 1 from approvals a where a.turn = t.id and a.status = 'pending')
          when 'clarify' then exists (select 1 from questions q where q.turn = t.id and q.status = 'open')
          when 'children' then exists (select 1 from turns c where c.parent = t.id and not c.background
            and c.status in ('queued', 'running', 'parked'))
          when 'money' then exists (select 1 from sessions s where s.id = t.session and (
            t.cap_usd < t.spent_usd + t.reserved_usd + t.children_usd + t.children_promised_usd + t.short_usd
            or s.cap_usd < s.spent_usd + s.reserved_usd + t.short_usd + (
              select sum(o.children_usd + o.children_promised_usd) from turns o where o.session = s.id)))
          else true end""",
    "a sleeper that no clock wakes": "select id from turns where status = 'parked' and wake_at is null",
    "a run of a turn that is over, and open": """
        select r.turn, r.status from tool_runs r join turns t on t.id = r.turn
        where t.status in ('done', 'failed', 'cancelled') and r.status in ('asked', 'approved', 'started')""",
    "something asked of a person by a turn that is over": """
        select a.id from approvals a join turns t on t.id = a.turn
        where t.status in ('done', 'failed', 'cancelled') and a.status = 'pending'
        union all select q.id from questions q join turns t on t.id = q.turn
        where t.status in ('done', 'failed', 'cancelled') and q.status = 'open'""",
}
AT_REST: dict[str, LiteralString] = {
    "a turn that is not over": "select id, parked_on from turns where status in ('queued', 'running', 'parked')",
    "a row that an idle session has not read": """
        select i.id, i.kind from inbox i left join turns t on t.id = i.turn
        where i.folded_into is null and (i.kind <> 'input' or t.started_at is not null)""",
    "a row that was folded into no message of its session": """
        select i.id from inbox i left join messages m on m.id = i.folded_into and m.session = i.session
        where i.folded_into is not null and m.id is null""",
    "two rows in one message": """
        select folded_into from inbox where folded_into is not null group by 1 having count(*) > 1""",
    "a turn that ended by a fault of ours": """
        select id, error_code, error_text from turns
        where status = 'failed' and not (class = 'chore' and error_code = 'deadline_passed')
          and error_code not in ('turn_cap_reached', 'session_cap_reached')""",
    "more spent than reserved for": """
        select id from turns where cap_usd < spent_usd + children_usd and status = 'done'
          and not exists (select 1 from audit a where a.subject = turns.id::text and a.action = 'cap.turn')""",
    "a call that nobody booked": "select id from calls where status = 'reserved'",
    "money that is still reserved": "select id from sessions where reserved_usd <> 0",
    "money that is promised to children that are over": "select id from turns where children_promised_usd <> 0",
}


@dataclass(slots=True)
class Memory:
    """What was seen before: what is final may not change."""

    turns: dict[UUID, tuple[Any, ...]] = field(default_factory=dict[UUID, tuple[Any, ...]])
    asked: dict[UUID, tuple[Any, ...]] = field(default_factory=dict[UUID, tuple[Any, ...]])
    folded: dict[int, int] = field(default_factory=dict[int, int])
    results: dict[tuple[UUID, int, int], str] = field(default_factory=dict[tuple[UUID, int, int], str])

    def look(self, worker: Ground) -> None:
        """Raises AssertionError for whatever must not be, or has changed and was final."""
        worker.database.read(self._look)

    def _look(self, connection: Connection) -> None:
        _nothing_of(connection, ALWAYS)
        for row in _rows(connection, "select id, status, answer, finished_at, error_code from turns"):
            if row["status"] not in LIVE:
                _keep(self.turns, row["id"], tuple(row.values()), "a turn that was over")
        asked = """
            select id, status, decided_by, decided_at from approvals where status <> 'pending'
            union all select id, status, answered_by, answered_at from questions where status <> 'open'"""
        for row in _rows(connection, asked):
            _keep(self.asked, row["id"], tuple(row.values()), "what a person had decided")
        for row in _rows(connection, "select id, folded_into from inbox where folded_into is not null"):
            _keep(self.folded, row["id"], row["folded_into"], "a row that was folded")
        final = "select * from tool_runs where status not in ('asked', 'approved', 'started')"
        for row in _rows(connection, final):
            _keep(self.results, (row["turn"], row["step"], row["ordinal"]), row["status"], "a run that was over")
        _calls_have_answers(connection, whole=False)


def at_rest(worker: Ground, effects: Effects) -> None:
    with worker.database.connection() as connection:
        _nothing_of(connection, AT_REST)
        _calls_have_answers(connection, whole=True)
        _effects_are_told(connection, effects)


def _nothing_of(connection: Connection, queries: Mapping[str, LiteralString]) -> None:
    for name, query in queries.items():
        found = _rows(connection, query)
        assert not found, f"{name}: {found}"


def _rows(connection: Connection, query: LiteralString) -> list[DictRow]:
    return connection.cursor(row_factory=dict_row).execute(query).fetchall()


def _keep(known: dict[Any, Any], key: Any, value: Any, what: str) -> None:
    before = known.setdefault(key, value)
    assert before == value, f"{what} changed: {before} became {value}"


def _calls_have_answers(connection: Connection, *, whole: bool) -> None:
    """Each call that the model made has exactly one result, before it speaks again."""
    waited: dict[UUID, set[str]] = {}
    for row in _rows(connection, "select session, role, content from messages order by session, id"):
        calls = waited.setdefault(row["session"], set())
        blocks = cast("list[dict[str, Any]]", json.loads(row["content"]))
        if row["role"] == "assistant":
            assert not calls, f"spoke before {calls} were answered"
            calls |= {block["id"] for block in blocks if block["type"] == "tool_use"}
        for block in blocks:
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in calls, f"a second or foreign result: {block['tool_use_id']}"
                calls.remove(block["tool_use_id"])
    left = {session: calls for session, calls in waited.items() if calls}
    assert not (whole and left), f"calls without a result: {left}"


def _effects_are_told(connection: Connection, effects: Effects) -> None:
    """Each effect happened once and is told as done, or its outcome is told as unknown; what did not run, did not."""
    runs = _rows(connection, "select turn, step, ordinal, status from tool_runs where repeat = 'once'")
    known = {(str(row["turn"]), row["step"], row["ordinal"]): row["status"] for row in runs}
    assert set(effects.happened) <= set(known)
    for key, status in known.items():
        happened = effects.happened[key]
        allowed = {"done": (1,), "unknown": (0, 1), "denied": (0,), "cancelled": (0,), "failed": (0,)}[status]
        assert happened in allowed, f"run {key} is {status} and happened {happened} times"


def told_once(worker: Ground, marks: Counter[str]) -> None:
    """What a person or a job said stands in the transcript once, if any turn was there to read it."""
    text = "\n".join(row["content"] for row in worker.rows("select content from messages where author <> 'tool'"))
    for mark in marks:
        assert text.count(f"<{mark}>") <= 1, f"{mark} was read twice"

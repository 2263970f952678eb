"""Jobs and their runs. A job is seen by its owner, and by the team where it is the team's."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.answers import bill, dollars
from api.wire.jobs import Job
from api.wire.shown import Delivery, Run
from shared.store.pool import Connection

_SHOWN: LiteralString = """
select j.id, j.name, j.owner, p.name as owner_name, j.cron, j.zone, j.prompt, j.tail, j.workspace, j.folder, j.profile,
  j.model, j.cap_usd, j.max_steps, j.deadline_s, j.audience, j.deliver_session, j.deliver_file, j.paused_at, j.next_at,
  j.created_at, j.updated_at, j.stop_same, j.stop_dearer, j.paused_why
from jobs j join principals p on p.id = j.owner
where j.removed_at is null and (j.owner = %(who)s or j.audience = 'team')
"""
ONE: LiteralString = _SHOWN + " and j.id = %(job)s"
LIST: LiteralString = _SHOWN + " order by j.created_at desc, j.id limit %(limit)s offset %(skip)s"
RUNS = """
select k.id, k.job, k.instant, k.manual, k.status, k.turn, k.error_code, k.error_text, k.created_at, k.ended_at,
  t.session, t.spent_usd, t.cost_unknown,
  (select count(*) from tool_runs r
    where r.session = t.session and r.turn = t.id and r.status = 'unknown') as unknown_effects,
  coalesce((select json_agg(json_build_object('kind', d.kind, 'target', d.target, 'status', d.status,
    'evidence', d.evidence, 'error_text', d.error_text) order by d.created_at)
    from deliveries d where d.tick = k.id), '[]') as deliveries
from ticks k left join turns t on t.id = k.turn
where k.job = %(job)s and (%(tick)s::uuid is null or k.id = %(tick)s)
order by k.created_at desc, k.instant desc limit %(limit)s offset %(skip)s
"""


def find(connection: Connection, job: UUID, who: UUID) -> DictRow:
    """Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(ONE, {"job": job, "who": who}).fetchone()
    if row is None:
        raise problems.not_found()
    return row


def page(connection: Connection, who: UUID, skip: int, limit: int) -> list[DictRow]:
    values = {"who": who, "skip": skip, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(LIST, values).fetchall()


def runs(connection: Connection, job: UUID, skip: int, limit: int, tick: UUID | None = None) -> list[Run]:
    """A job's runs, newest first."""
    values = {"job": job, "skip": skip, "limit": limit, "tick": tick}
    return [_run(row) for row in connection.cursor(row_factory=dict_row).execute(RUNS, values)]


def shown(row: DictRow, who: UUID) -> Job:
    kept = (
        "id", "name", "cron", "zone", "prompt", "tail", "workspace", "folder", "profile", "model", "max_steps",
        "deadline_s", "audience", "deliver_session", "deliver_file", "next_at", "created_at", "updated_at",
        "stop_same", "paused_why",
    )  # fmt: skip
    return Job(
        owner=row["owner_name"],
        mine=row["owner"] == who,
        cap_usd=dollars(row["cap_usd"]),
        paused=row["paused_at"] is not None,
        stop_dearer=None if row["stop_dearer"] is None else float(row["stop_dearer"]),
        **{name: row[name] for name in kept},
    )


def _run(row: DictRow) -> Run:
    kept = ("id", "instant", "manual", "status", "error_code", "error_text", "created_at", "ended_at")
    return Run(
        job_id=row["job"],
        turn_id=row["turn"],
        session_id=row["session"],
        cost_usd=None if row["turn"] is None else bill(row["spent_usd"], row["cost_unknown"]),
        unknown_effects=row["unknown_effects"],
        deliveries=[Delivery(**one) for one in row["deliveries"]],
        **{name: row[name] for name in kept},
    )

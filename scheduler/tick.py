"""Turns due instants into turns.

The invariant: a tick, its session, its turn with the first input and the job's next instant are one transaction, unique
on (job, instant): a crash loses nothing, and a second scheduler adds nothing. After an outage a job runs once, for its
latest missed instant; the ones before are recorded as skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from scheduler import breakers, job_prompt
from scheduler.breakers import Trip
from scheduler.room import Room
from scheduler.rows import GONE, Did, Result, each
from shared import cron, shared_prefix
from shared.errors import Refused
from shared.ids import uuid7
from shared.providers import resolve
from shared.store.intake import NewSession, NewTurn, admit, create_session
from shared.store.pool import Connection
from shared.store.statements import Statement, every, one, run, schedule
from shared.values import Audience, OnBusy, SessionKind, TurnClass

SKIPPED_MOST = 20
"""How many missed instants before the latest are recorded; the rest of a long outage leaves no rows."""
OPEN_RUNS_MOST = 10
"""A job that is slower than its own rhythm is not started again while so many of its runs are open."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One due instant of a job, about to be started. `job` is the job's row."""

    id: UUID
    instant: datetime
    manual: bool
    job: DictRow


def run_due(room: Room) -> int:
    """Start everything that is due, by cron and by hand. Returns how many runs were started."""
    by_cron = each(
        room,
        "tick",
        partial(_load, schedule.DUE_JOBS),
        partial(_tick_job, room),
    )
    by_hand = each(
        room,
        "tick_manual",
        partial(_load, schedule.DUE_TICKS),
        partial(_tick_manual, room),
    )
    return by_cron[Did.DONE] + by_hand[Did.DONE]


def _load(statement: Statement, connection: Connection, limit: int) -> list[DictRow]:
    """The due rows, and whether each folder is gone: asked where nothing is locked, since a dead mount may hang."""
    rows = every(connection, statement, {"limit": limit})
    return [{**row, "folder_gone": row["folder"] is not None and not Path(row["folder"]).is_dir()} for row in rows]


def _tick_job(room: Room, connection: Connection, row: DictRow) -> Result:
    job = one(connection, schedule.JOB_COLUMNS, {"job": row["id"]})
    if job is None or job["folder"] != row["folder"]:
        return GONE
    since, now = job["next_at"], job["now"]
    try:
        following = cron.next_instants(job["cron"], job["zone"], now, 1)
        missed = _missed(job, now) if since else ()
    except Refused as refused:
        return _broken(room, connection, job, refused)
    trip = _trip(connection, job) if missed else None
    if missed and trip is not None:
        return _tripped(room, connection, job, missed[-1], trip)
    run(connection, schedule.JOB_NEXT, {"job": job["id"], "next_at": following[0] if following else None})
    if not missed:
        return GONE
    for instant in missed[:-1]:
        _record(connection, job["id"], instant, "skipped", "missed", "a later instant of this job was due as well")
    return _tick(room, connection, job, missed[-1], folder_gone=row["folder_gone"])


def _missed(job: DictRow, now: datetime) -> tuple[datetime, ...]:
    """The latest due instants, in order. `next_at` is one whatever the expression says now: it was promised."""
    found = cron.last_instants(job["cron"], job["zone"], job["next_at"], now, SKIPPED_MOST + 1)
    return found if job["next_at"] in found or len(found) > SKIPPED_MOST else (job["next_at"], *found)


def _tick(room: Room, connection: Connection, job: DictRow, instant: datetime, *, folder_gone: bool) -> Result:
    if job["open_runs"] >= OPEN_RUNS_MOST:
        text = f"{job['open_runs']} runs of this job are still open: make it rarer, or its runs shorter"
        _record(connection, job["id"], instant, "skipped", "too_many_open", text)
        return Result(Did.DONE, lambda: room.count("tick.skipped", job=str(job["id"]), code="too_many_open"))
    if folder_gone:
        _record(connection, job["id"], instant, "failed", "folder_missing", _folder_text(job))
        return Result(Did.DONE, lambda: room.count("tick.failed", job=str(job["id"]), code="folder_missing"))
    tick = _record(connection, job["id"], instant, "due", None, None)
    if tick is None:
        return GONE
    return _start(room, connection, Tick(tick, instant, manual=False, job=job))


def _tick_manual(room: Room, connection: Connection, row: DictRow) -> Result:
    """A tick that the API inserted as `due`: a run by hand. A paused job runs; a removed one does not."""
    held = one(connection, schedule.TICK_HOLD, {"tick": row["id"]})
    if held is None or held["folder"] != row["folder"]:
        return GONE
    ended = None
    if held["removed_at"] is not None:
        ended = ("cancelled", "job_removed", "the job was removed before this run began")
    elif row["folder_gone"]:
        ended = ("failed", "folder_missing", _folder_text(held))
    if ended is not None:
        status, code, text = ended
        run(
            connection,
            schedule.TICK_ENDED,
            {"tick": row["id"], "status": status, "error_code": code, "error_text": text},
        )
        return Result(Did.DONE, lambda: room.count(f"tick.{status}", job=str(held["id"]), code=code))
    return _start(room, connection, Tick(held["tick"], held["instant"], held["manual"], held))


def _start(room: Room, connection: Connection, tick: Tick) -> Result:
    """The session, the turn and its first input, and the tick that names it."""
    job, settings = tick.job, room.settings
    prompt = job_prompt.build(
        prompt=job["prompt"], tail=job["tail"], name=job["name"], run=tick.id, instant=tick.instant, zone=job["zone"],
        manual=tick.manual,
    )  # fmt: skip
    session = create_session(
        connection,
        NewSession(
            owner=job["principal"],
            provider=resolve.name(settings),
            model=job["model"] or settings.model,
            workspace=job["workspace"] or str(settings.home.absolute() / "workspaces" / "{session}"),
            audience=Audience(job["audience"]),
            kind=SessionKind.JOB,
            title=job["name"],
            profile=job["profile"],
            folder=job["folder"],
            cap_usd=job["cap_usd"],
        ),
    )
    turn = admit(
        connection,
        NewTurn(
            session=session,
            principal=job["principal"],
            turn_class=TurnClass.JOB,
            payload=prompt.payload,
            deadline_s=job["deadline_s"],
            max_steps=job["max_steps"] or settings.max_steps,
            cap_usd=job["cap_usd"],
            stable_prefix_len=prompt.stable_prefix_len,
            job=job["id"],
            shared_key=shared_prefix.of_job(
                resolve.name(settings),
                job["model"] or settings.model,
                job["profile"],
                attached=job["folder"] is not None,
            ),
        ),
        on_busy=OnBusy.QUEUE,
        queue_bound=settings.queued_per_session,
    ).turn
    run(connection, schedule.TICK_STARTED, {"tick": tick.id, "turn": turn})
    ids = {"job": str(job["id"]), "tick": str(tick.id), "turn": str(turn), "manual": tick.manual}
    return Result(Did.DONE, partial(_started, room, ids))


def _started(room: Room, ids: dict[str, Any]) -> None:
    room.count("tick.started", **ids)
    room.doorbell.ring(TurnClass.JOB)


def _record(
    connection: Connection, job: UUID, instant: datetime, status: str, code: str | None, text: str | None
) -> UUID | None:
    """Insert a tick; None where that instant of the job has one already."""
    params = {
        "tick": uuid7(), "job": job, "instant": instant, "status": status, "error_code": code, "error_text": text,
    }  # fmt: skip
    added = one(connection, schedule.TICK_ADD, params)
    return added["id"] if added else None


def _trip(connection: Connection, job: DictRow) -> Trip | None:
    """Whether the job's own breakers, where it has any, stop it here. A run by hand is somebody's wish and is none."""
    if job["stop_same"] is None and job["stop_dearer"] is None:
        return None
    params = {"job": job["id"], "since": job["watched_from"], "limit": breakers.MOST_RUNS}
    past = [breakers.Past(row["answer"], row["usd"]) for row in every(connection, schedule.PAST_RUNS, params)]
    return breakers.tripped(past, job["stop_same"], job["stop_dearer"])


def _tripped(room: Room, connection: Connection, job: DictRow, instant: datetime, trip: Trip) -> Result:
    """The job is paused until somebody resumes it; the run that did not begin says why."""
    _record(connection, job["id"], instant, "skipped", trip.code, trip.why)
    run(connection, schedule.JOB_TRIPPED, {"job": job["id"], "why": trip.why})
    return Result(Did.DONE, lambda: room.count("job.paused", job=str(job["id"]), code=trip.code))


def _broken(room: Room, connection: Connection, job: DictRow, refused: Refused) -> Result:
    """A cron expression or zone that can no longer be read: the job is paused, and its failed tick says why."""
    _record(connection, job["id"], job["next_at"] or job["now"], "failed", refused.code, refused.message)
    run(connection, schedule.JOB_BROKEN, {"job": job["id"]})
    return Result(Did.DONE, lambda: room.count("job.paused", job=str(job["id"]), code=refused.code))


def _folder_text(job: DictRow) -> str:
    return f"the job's folder {job['folder']} is not there: bring it back, or change the job's folder"

"""Jobs: what runs by the clock, who is told, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import answers, commands, host_paths, pages
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.planning import add, change, explained, is_there, may_change, remove
from api.reads import jobs
from api.wire.asked import JobAsked, JobChange, Nothing
from api.wire.jobs import Job, JobPage
from api.wire.shown import Explained, Run, RunPage
from shared.ids import uuid7
from shared.providers import named, resolve
from shared.store.pool import Connection

router = APIRouter(tags=["jobs"])
# Two runs asked for in one millisecond are two runs: ticks are unique on (job, instant).
MANUAL = """
insert into ticks (id, job, instant, manual)
values (%(tick)s, %(job)s,
  date_trunc('milliseconds', clock_now()) + (random() * 1000)::int * interval '1 microsecond', true)
"""


@router.post("/v1/jobs", status_code=201, openapi_extra=accepts(JobAsked), responses=gives(Job, 201))
def add_job(serving: Serving, written: Writing) -> Response:
    """Add a job. Its next instant is computed in its own zone."""
    asked = written.body(JobAsked)
    _check(serving, written, asked)

    def effect(connection: Connection) -> Answer:
        job = add(connection, written.caller, asked, serving.settings.job_deadline_s)
        return _shown(connection, job, written, status=201)

    return commands.perform(serving, written, effect).response()


@router.get("/v1/jobs", responses=gives(JobPage))
def list_jobs(
    serving: Serving, caller: Reading, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """The team's jobs and the caller's own, newest first."""
    skip, who = pages.decode(cursor, 0), caller.principal.id
    rows = serving.database.read(lambda c: jobs.page(c, who, skip, limit + 1))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(JobPage(items=[jobs.shown(row, who) for row in rows[:limit]], next=following))


@router.get("/v1/jobs/{job}", responses=gives(Job))
def get_job(serving: Serving, caller: Reading, job: str) -> Response:
    """One job."""
    id_, who = identifier(job), caller.principal.id
    return answers.ok(serving.database.read(lambda c: jobs.shown(jobs.find(c, id_, who), who)))


@router.patch("/v1/jobs/{job}", openapi_extra=accepts(JobChange), responses=gives(Job))
def change_job(serving: Serving, written: Writing, job: str) -> Response:
    """Change what is given; `paused` stops the clock of a job and starts it again."""
    id_, asked = identifier(job), written.body(JobChange)
    _check(serving, written, asked)

    def effect(connection: Connection) -> Answer:
        row = may_change(connection, id_, written.caller)
        change(connection, written.caller, row, asked)
        return _shown(connection, id_, written)

    return commands.perform(serving, written, effect).response()


@router.delete("/v1/jobs/{job}", status_code=204, responses=gives(Job, 204) | {204: {"description": "Removed"}})
def remove_job(serving: Serving, written: Writing, job: str) -> Response:
    """Remove a job; its runs and their sessions stay."""
    id_ = identifier(job)

    def work(connection: Connection, again: bool) -> None:
        with connection.transaction():
            if not again or is_there(connection, id_):  # where a first try removed it, all is as it should be
                may_change(connection, id_, written.caller)
                remove(connection, id_)

    serving.database.run(work)
    return Response(status_code=204)


@router.post("/v1/jobs/{job}/run", status_code=202, openapi_extra=accepts(Nothing), responses=gives(Run, 202))
def run_job(serving: Serving, written: Writing, job: str) -> Response:
    """Let a job run now, also while it is paused. The scheduler starts it."""
    id_ = identifier(job)
    written.body(Nothing)

    def effect(connection: Connection) -> Answer:
        jobs.find(connection, id_, written.caller.principal.id)
        tick = uuid7()
        connection.execute(MANUAL, {"tick": tick, "job": id_})
        (run,) = jobs.runs(connection, id_, 0, 1, tick)
        return Answer(202, answers.text(run), after=lambda: serving.ringer.ring("tick"))

    return commands.perform(serving, written, effect).response()


@router.get("/v1/jobs/{job}/runs", responses=gives(RunPage))
def list_runs(
    serving: Serving, caller: Reading, job: str, limit: pages.Limit = pages.DEFAULT, cursor: pages.Cursor = None
) -> Response:
    """A job's runs, newest first, with their deliveries."""
    id_, skip = identifier(job), pages.decode(cursor, 0)

    def read(connection: Connection) -> list[Any]:
        jobs.find(connection, id_, caller.principal.id)
        return jobs.runs(connection, id_, skip, limit + 1)

    rows = serving.database.read(read)
    return answers.ok(RunPage(items=rows[:limit], next=pages.encode(skip + limit) if len(rows) > limit else None))


@router.get("/v1/jobs/{job}/explain", responses=gives(Explained))
def explain_job(serving: Serving, caller: Reading, job: str, n: Annotated[int, Query(ge=1, le=100)] = 10) -> Response:
    """When the job comes due next, in its own local time and in UTC, across clock changes."""
    id_ = identifier(job)
    return answers.ok(serving.database.read(lambda c: explained(c, jobs.find(c, id_, caller.principal.id), n)))


def _shown(connection: Connection, job: UUID, written: Writing, *, status: int = 200) -> Answer:
    who = written.caller.principal.id
    return Answer(status, answers.text(jobs.shown(jobs.find(connection, job, who), who)))


def _check(serving: Serving, written: Writing, asked: JobAsked | JobChange) -> None:
    if asked.model is not None:
        named.check(serving.settings, resolve.name(serving.settings), asked.model)
    host_paths.check_all(
        written.caller, serving.settings.home, workspace=asked.workspace, folder=asked.folder,
        deliver_file=asked.deliver_file,
    )  # fmt: skip

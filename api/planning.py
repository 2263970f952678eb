"""A job's definition: what may stand in it, when it comes due next, who may change it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import errors, sql
from psycopg.rows import DictRow

from api.auth import Caller
from api.problems import invalid
from api.reads import jobs, sessions
from api.wire.asked import JobAsked, JobChange
from api.wire.shown import DueAt, Explained
from shared import cron
from shared.errors import Refused
from shared.ids import uuid7
from shared.store import principals
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import outward, run
from shared.values import Audience, PrincipalKind, Role

BREAKERS = ("stop_same", "stop_dearer")
_MAY_BE_NULL = frozenset(
    {"model", "cap_usd", "max_steps", "deliver_session", "workspace", "folder", "deliver_file", *BREAKERS}
)


# Whoever lets a job go on has looked at it: its breakers count from here.
_GOES_ON = "paused_at = null, paused_why = null, watched_from = clock_now()"


def add(connection: Connection, caller: Caller, asked: JobAsked, deadline_s: int) -> UUID:
    """Insert a job with its next instant. Raises Refused."""
    given = asked.model_dump()
    _check(connection, caller, given)
    if not asked.prompt.strip():
        raise invalid("prompt", "must hold some text that is not blank")
    job = uuid7()
    values = {
        **given, "id": job, "owner": caller.principal.id,
        "principal": _acting(connection, caller, job, given["audience"]),
        "deadline_s": asked.deadline_s or deadline_s, "next_at": _next(connection, asked.cron, asked.zone),
    }  # fmt: skip
    try:
        run(connection, outward.JOB_ADD, values)
    except errors.UniqueViolation as error:
        raise _taken(asked.name) from error
    watched = {name: given[name] for name in BREAKERS if given[name] is not None}
    if watched:
        _write(connection, job, watched, None)
    return job


def _acting(connection: Connection, caller: Caller, job: UUID, audience: str) -> UUID:
    """Who runs it, and so owns its sessions: a principal of its own, or the person where nobody else may see them."""
    if audience == Audience.PRIVATE:
        return caller.principal.id
    return principals.ensure_principal(connection, f"job:{job}", PrincipalKind.JOB, Role.MEMBER)


def may_change(connection: Connection, job: UUID, caller: Caller) -> DictRow:
    """The job's row, locked. Raises Refused `not_found`, `not_yours`."""
    row = jobs.find(connection, job, caller.principal.id)
    if row["owner"] != caller.principal.id and caller.principal.role is not Role.ADMIN:
        raise Refused(f"only {row['owner_name']} or an admin may change this job", code="not_yours", status=403)
    connection.execute("select 1 from jobs where id = %s for no key update", (job,))
    return jobs.find(connection, job, caller.principal.id)


def change(connection: Connection, caller: Caller, row: DictRow, asked: JobChange) -> None:
    """Write what was given; where the rhythm changed or the job goes on, the next instant is computed anew."""
    given = asked.model_dump(exclude_unset=True)
    paused = given.pop("paused", None)
    for name, value in given.items():
        if value is None and name not in _MAY_BE_NULL:
            raise invalid(name, "cannot be taken away")
    if isinstance(given.get("prompt"), str) and not given["prompt"].strip():
        raise invalid("prompt", "must hold some text that is not blank")
    _check(connection, caller, given)
    if "audience" in given and given["audience"] != row["audience"]:
        given["principal"] = _acting(connection, caller, row["id"], given["audience"])
    rhythm = given.keys() & {"cron", "zone"}
    if rhythm or paused is False:
        following = _next(connection, given.get("cron", row["cron"]), given.get("zone", row["zone"]))
        if rhythm or row["paused_at"] is not None:
            given["next_at"] = following
    _write(connection, row["id"], given, paused)


def _write(connection: Connection, job: UUID, given: dict[str, Any], paused: bool | None) -> None:
    sets: list[sql.Composable] = [
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in given
    ]
    if paused is not None:
        sets.append(sql.SQL("paused_at = coalesce(paused_at, clock_now())" if paused else _GOES_ON))
    sets.append(sql.SQL("updated_at = clock_now()"))
    statement = sql.SQL("update jobs set {} where id = {}").format(sql.SQL(", ").join(sets), sql.Placeholder("id"))
    try:
        connection.execute(statement, {**given, "id": job})
    except errors.UniqueViolation as error:
        raise _taken(str(given.get("name"))) from error


def is_there(connection: Connection, job: UUID) -> bool:
    return fetch(connection, "select 1 from jobs where id = %s and removed_at is null", (job,)) is not None


def remove(connection: Connection, job: UUID) -> None:
    """Its name is free again; ticks and sessions stay."""
    run(connection, outward.JOB_REMOVE, {"job": job})


def explained(connection: Connection, row: DictRow, n: int) -> Explained:
    """The next `n` instants after now (the database's clock, where time may be a test's)."""
    found = _sentence(lambda: cron.explain(row["cron"], row["zone"], _now(connection), n))
    text = (
        f"'{row['cron']}' in {row['zone']}. In the night that the clock is put back it fires once, the first time; in"
        " the night that it is put forward, at the first valid instant after."
    )
    if row["paused_at"] is not None:
        why = f" since {row['paused_why']}" if row["paused_why"] else ""
        text = f"This job is paused{why}: none of these will run. {text}"
    text = " ".join([text, *_watched(row)])
    shown = [DueAt(local=one.local.isoformat(), utc=one.utc.isoformat().replace("+00:00", "Z")) for one in found]
    return Explained(text=text, cron=row["cron"], zone=row["zone"], instants=shown)


def _watched(row: DictRow) -> Iterator[str]:
    if row["stop_same"] is not None:
        yield f"It is paused once {row['stop_same']} of its runs in a row have said the same, but for dates and times."
    if row["stop_dearer"] is not None:
        yield (
            f"It is paused once its last five runs cost {row['stop_dearer']:g} times as much as the five before;"
            " failed runs and runs before it was last resumed do not count."
        )


def _check(connection: Connection, caller: Caller, given: dict[str, Any]) -> None:
    if given.get("deliver_session") is not None:
        sessions.must_see(connection, given["deliver_session"], caller.principal.id)


def _next(connection: Connection, expression: str, zone: str) -> datetime:
    found = _sentence(lambda: cron.next_instants(expression, zone, _now(connection), 1))
    if not found:
        raise Refused(f"the cron expression '{expression}' never fires", code="cron_never_fires", status=422)
    return found[0]


def _sentence(read: Any) -> Any:
    """Cron's own refusals, with the status of a wrong field."""
    try:
        return read()
    except Refused as error:
        raise Refused(error.message, code=error.code, status=422) from error


def _now(connection: Connection) -> datetime:
    row = fetch(connection, "select clock_now() as now", ())
    assert row is not None, "a select without from has one row"
    return row["now"]


def _taken(name: str) -> Refused:
    return Refused(f"another job is called '{name}': choose another name", code="job_name_taken", status=409)

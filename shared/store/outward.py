"""What a run does beyond its own conversation, as rows: the jobs of its person, a message to another conversation.

The invariants: a run's effect happens once, however often it is repeated; a job is made by a person's turn and for that
person; a message reaches nobody who may not read the conversation that it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow

from shared import cron
from shared.errors import LeaseLost, Refused
from shared.store import intake, principals
from shared.store.pool import Connection
from shared.store.statements import every, one, outward, run
from shared.values import Audience, PrincipalKind, Role

MOST_JOBS = 50
"""Of one person, made from conversations or otherwise: past it a conversation makes no more."""
MOST_LISTED = 50
MOST_UNREAD = 20
"""How much may wait in a conversation that has read none of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A run: its conversation, its turn, and the fence of its holder."""

    session: UUID
    turn: UUID
    fence: int

    def params(self) -> dict[str, object]:
        return {"session": self.session, "turn": self.turn, "fence": self.fence}


@dataclass(frozen=True, slots=True)
class NewJob:
    """`id` is the run's key, so that a run that is repeated finds what it made."""

    id: UUID
    name: str
    cron: str
    zone: str
    prompt: str
    deadline_s: int


def add_job(connection: Connection, place: Place, new: NewJob) -> datetime:
    """A job of the person who asked for the turn; what its runs answer comes to this conversation. When it comes due
    first. Opens its transaction. Raises LeaseLost, what `cron.parse` raises, and Refused `job_name_taken`,
    `jobs_too_many`, `role_insufficient`, `not_a_person`."""
    with connection.transaction():
        row = _acting(connection, place)
        now = _now(connection)
        instants = cron.next_instants(new.cron, new.zone, now, 1)
        if not instants:
            raise Refused(f"the cron expression '{new.cron}' never fires", code="cron_never_fires")
        if one(connection, outward.JOB_BY_ID, {"job": new.id}) is not None:
            return instants[0]
        owned = one(connection, outward.JOBS_OWNED, {"who": row["requested_by"]}) or {"n": 0}
        if owned["n"] >= MOST_JOBS:
            raise Refused(f"there are {owned['n']} jobs of this person already: remove one first", code="jobs_too_many")
        _insert(connection, place, new, row, instants[0])
        return instants[0]


def _insert(connection: Connection, place: Place, new: NewJob, row: DictRow, next_at: datetime) -> None:
    team = row["audience"] == Audience.TEAM
    principal: UUID = row["requested_by"]
    if team:
        principal = principals.ensure_principal(connection, f"job:{new.id}", PrincipalKind.JOB, Role.MEMBER)
    cap: Decimal | None = row["cap_usd"]
    values = {
        "id": new.id, "name": new.name, "owner": row["requested_by"], "principal": principal, "cron": new.cron,
        "zone": new.zone, "prompt": new.prompt, "tail": "", "workspace": None, "folder": None, "profile": "default",
        "model": None, "cap_usd": cap, "max_steps": None, "deadline_s": new.deadline_s,
        "audience": Audience.TEAM if team else Audience.PRIVATE, "deliver_session": place.session,
        "deliver_file": None, "next_at": next_at,
    }  # fmt: skip
    try:
        run(connection, outward.JOB_ADD, values)
    except errors.UniqueViolation as error:
        raise Refused(f"another job is called '{new.name}': choose another name", code="job_name_taken") from error


def remove_job(connection: Connection, place: Place, name: str) -> None:
    """One of the person's own. Opens its transaction. Raises LeaseLost, Refused `not_found`, `not_yours`."""
    with connection.transaction():
        row = _acting(connection, place)
        found = one(connection, outward.JOB_NAMED, {"name": name, **_eyes(row)})
        if found is None:
            raise Refused(f"there is no job called '{name}' (any more): list shows which there are", code="not_found")
        if not found["mine"]:
            raise Refused(f"the job '{name}' is somebody else's, who alone may remove it", code="not_yours")
        run(connection, outward.JOB_REMOVE, {"job": found["id"]})


def jobs(connection: Connection, place: Place) -> list[DictRow]:
    """Those that this conversation may speak of, newest first. Raises LeaseLost."""
    row = one(connection, outward.RUN_PLACE, place.params())
    if row is None:
        raise LeaseLost
    return every(connection, outward.JOBS_SEEN, {**_eyes(row), "limit": MOST_LISTED})


def send(connection: Connection, place: Place, target: UUID, payload: str, key: str) -> bool:
    """Put `payload` (an array of blocks) into another conversation's inbox, once a key; no turn of a person begins by
    it. False where it waits there already. Opens its transaction. Raises LeaseLost, Refused `not_found`,
    `readers_differ`, `inbox_full`.

    The fence is compared and not held: a message that comes late is the same message under the same key, and holding
    two sessions at once would let two conversations that write to each other wait for each other.
    """
    with connection.transaction():
        row = one(connection, outward.MESSAGE_TARGET, {**place.params(), "target": target, "most": MOST_UNREAD})
        if row is None or row["fence"] != place.fence:
            raise LeaseLost
        if row["id"] is None or target == place.session:
            raise Refused("there is no other conversation under that id that this person may see", code="not_found")
        if not row["fits"]:
            raise Refused(
                "people read that conversation who may not read this one, so nothing is carried there: tell your "
                "person, who may",
                code="readers_differ",
            )
        if row["unread"] >= MOST_UNREAD:
            raise Refused(f"{row['unread']} messages wait there already: try again later", code="inbox_full")
        return intake.deliver(connection, target, row["requested_by"], payload, f"message:{key}") is not None


def _acting(connection: Connection, place: Place) -> DictRow:
    row = one(connection, outward.RUN_PLACE, place.params())
    if row is None:
        raise LeaseLost
    if row["by_kind"] != PrincipalKind.PERSON:
        raise Refused("only a person's turn makes or removes jobs: nothing schedules itself", code="not_a_person")
    if not row["may_write"]:
        raise Refused("who asked, or spoke in this turn, may not make or remove jobs", code="role_insufficient")
    return row


def _eyes(row: DictRow) -> dict[str, object]:
    return {"who": row["requested_by"], "alone": row["audience"] == Audience.PRIVATE}


def _now(connection: Connection) -> datetime:
    row = intake.fetch(connection, "select clock_now() as now", ())
    assert row is not None, "a select without from has one row"
    return row["now"]

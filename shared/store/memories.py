"""What is remembered, as rows: read, changed, its history. A change is one transaction and one revision.

The invariants: two who write at once come one after the other, each seeing what the other left; a run's change happens
once, however often the run is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never
from uuid import UUID

from psycopg.rows import DictRow

from shared import memory, suspicion
from shared.errors import LeaseLost, Refused
from shared.memory import TEAM, Action, Change, Head, Kind, Scope
from shared.store.pool import Connection
from shared.store.statements import every, one, run
from shared.store.statements import memory as statements
from shared.values import Audience, SessionKind


@dataclass(frozen=True, slots=True)
class Run:
    """A tool run that writes: its place, and the fence of its holder. `ordinal` is None for a compaction, whose facts
    stand or fall with its edit."""

    session: UUID
    turn: UUID
    step: int
    ordinal: int | None
    fence: int


@dataclass(frozen=True, slots=True)
class Told:
    """A scope with when and by whose word it was changed last; None where it never was."""

    head: Head
    updated_at: datetime | None
    updated_by: str | None


@dataclass(frozen=True, slots=True)
class Written:
    """What is there now; `changed` is false where it was so before."""

    head: Head
    changed: bool


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a compaction wanted remembered: what is in memory now, and what is not, each with the code that says why."""

    saved: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def left(self) -> tuple[str, ...]:
        """What somebody may still save; not what reads like an instruction."""
        return tuple(fact for fact, code in self.refused if code != memory.SUSPICIOUS)


MOST_FACTS = 20
"""That one compaction writes."""
MOST_UNREAD = 50
"""How much may be put before a conversation that has read none of it."""
NOWHERE = {"session": None, "turn": None, "step": None, "ordinal": None, "fence": None}


def read(connection: Connection, scope: Scope) -> Told:
    """The scope as it is."""
    row = one(connection, statements.MEMORY_HEAD, {"scope": scope.key})
    if row is None:
        return Told(Head(scope, 0, ()), None, None)
    changed = row["revision"] > 0
    return Told(_head(scope, row), row["updated_at"] if changed else None, row["updated_by"])


def change(connection: Connection, scope: Scope, asked: Change, author: UUID, most: int) -> Written:
    """A person's change, by request. Opens its transaction. Raises what `memory.apply` raises."""
    with connection.transaction():
        return _write(connection, scope, asked, author, most, NOWHERE)


def change_by_run(
    connection: Connection,
    place: Run,
    called: str,
    asked: Change,
    most: Callable[[Kind], int],
    *,
    from_jobs: bool = False,
) -> Written:
    """The change that a tool run asks for, once: repeated, it answers with what it did. Opens its transaction.

    Raises LeaseLost, what `scope_of` raises, and what `memory.apply` raises.
    """
    with connection.transaction():
        params = _place(place)
        row = one(connection, statements.MEMORY_PLACE, params)
        if row is None:
            raise LeaseLost
        done = done_by(connection, place)
        if done is not None:
            return done
        scope = scope_of(row, called)
        _must_write(row, scope, from_jobs=from_jobs)
        return _write(connection, scope, asked, row["requested_by"], most(scope.kind), params)


def flush(
    connection: Connection,
    place: Run,
    called: str,
    facts: Sequence[str],
    most: Callable[[Kind], int],
    *,
    from_jobs: bool = False,
) -> Flushed:
    """Add facts as revisions of their own, by the same rules as a run's. Inside the transaction of the edit that folds
    what they were said in: it is what makes them once. Raises LeaseLost."""
    params = _place(place)
    row = one(connection, statements.MEMORY_PLACE, params)
    if row is None:
        raise LeaseLost
    saved: list[str] = []
    refused = [_refused(fact, "memory_too_many") for fact in facts[MOST_FACTS:]]
    for fact in facts[:MOST_FACTS]:
        try:
            scope = scope_of(row, called)
            _must_write(row, scope, from_jobs=from_jobs)
            _write(connection, scope, Change(Action.ADD, fact), row["requested_by"], most(scope.kind), params)
            saved.append(fact)
        except Refused as why:
            refused.append(_refused(fact, why.code))
    return Flushed(tuple(saved), tuple(refused))


def _refused(fact: str, code: str) -> tuple[str, str]:
    """What reads like an instruction is called that, whatever else there is against it."""
    return fact, memory.SUSPICIOUS if suspicion.why(fact) else code


def written_from(connection: Connection, session: UUID) -> str | None:
    """The memory that a conversation writes (`team`, `me`), which has the readers that it has; None where there is
    none."""
    row = one(connection, statements.MEMORY_READER, {"session": session})
    if row is None:
        raise LeaseLost
    if row["kind"] == SessionKind.CHILD or row["audience"] == Audience.PEOPLE:
        return None
    return Kind.TEAM if row["audience"] == Audience.TEAM else "me"


def done_by(connection: Connection, place: Run) -> Written | None:
    """What this run has written already."""
    row = one(connection, statements.MEMORY_OF_RUN, _place(place))
    return None if row is None else Written(_head(_scope(row["scope"]), row), changed=True)


def read_by_run(connection: Connection, session: UUID, called: str) -> Head:
    """The scope that a run may read under that name. Raises what `scope_of` raises."""
    row = one(connection, statements.MEMORY_READER, {"session": session})
    if row is None:
        raise LeaseLost
    return read(connection, scope_of(row, called)).head


def scope_of(row: DictRow, called: str) -> Scope:
    """Whose memory a conversation means by `team` and `me`. Raises Refused `memory_of_one_person`: where others read
    along, nothing of one person's is read or written."""
    if called == Kind.TEAM:
        return TEAM
    if row["audience"] != Audience.PRIVATE:
        raise Refused(
            "others read this conversation, so only team memory is read here; a person adds something of theirs with "
            "`nightshift memory share`",
            code="memory_of_one_person", status=403,
        )  # fmt: skip
    return Scope(Kind.PERSON, row["owner"])


def snapshot(connection: Connection, session: UUID) -> tuple[Head, ...]:
    """What enters a session's prompt, in the order of the kinds; scopes that hold nothing are left out."""
    rows = every(connection, statements.MEMORY_SNAPSHOT, {"session": session})
    heads = [_head(_scope(row["scope"]), row) for row in rows]
    return tuple(sorted(heads, key=lambda head: list(Kind).index(head.scope.kind)))


def history(connection: Connection, scope: Scope, who: UUID, before: int, limit: int) -> list[DictRow]:
    """Revisions below `before`, newest first; `turn` only where `who` may see it."""
    params = {"scope": scope.key, "who": who, "before": before, "limit": limit}
    return every(connection, statements.MEMORY_HISTORY, params)


def included(connection: Connection, principal: UUID, session: UUID, detail: str) -> None:
    """The line of the audit for what a person puts before others. Raises Refused `includes_unread` (429)."""
    unread = one(connection, statements.MEMORY_UNREAD, {"session": session}) or {"n": 0}
    if unread["n"] >= MOST_UNREAD:
        raise Refused(
            f"the conversation has {unread['n']} such messages to read already: wait until it has read them",
            code="includes_unread", status=429,
        )  # fmt: skip
    one(connection, statements.MEMORY_INCLUDED, {"principal": principal, "session": session, "detail": detail})


def picked(head: Head, numbers: Sequence[int], seen: int) -> tuple[str, ...]:
    """The entries of these numbers, counted from 1. Raises MemoryChanged, Refused `memory_entry_unknown`."""
    if seen != head.revision:
        raise memory.MemoryChanged(head, seen)
    unknown = [number for number in numbers if not 1 <= number <= len(head.entries)]
    if unknown or not numbers:
        raise Refused(
            f"there are entries 1 to {len(head.entries)}: name at least one of them",
            code="memory_entry_unknown", status=422,
        )  # fmt: skip
    return tuple(head.entries[number - 1] for number in dict.fromkeys(numbers))


def _must_write(row: DictRow, scope: Scope, *, from_jobs: bool) -> None:
    """A job's material was written by strangers and nobody watches it work; a team's memory is read by people whom a
    private conversation is none of."""
    if row["kind"] == SessionKind.JOB and not from_jobs:
        raise Refused(
            "a job writes no memory: say in the answer what should be remembered, and a person decides",
            code="memory_from_job", status=403,
        )  # fmt: skip
    match scope.kind:
        case Kind.TEAM:
            if row["audience"] != Audience.TEAM:
                raise Refused(
                    "not the whole team reads this conversation, so what is said here does not go into the team's "
                    "memory by itself: give the person the text, and they put it there with `nightshift memory add`",
                    code="memory_of_the_team", status=403,
                )  # fmt: skip
            if not row["may_write"]:
                raise Refused(
                    "somebody whose words this turn carries may not write for the team: a member may",
                    code="role_insufficient", status=403,
                )  # fmt: skip
        case Kind.PERSON | Kind.PROFILE:
            pass
        case _:
            assert_never(scope.kind)


def _write(
    connection: Connection, scope: Scope, asked: Change, author: UUID, most: int, place: Mapping[str, object]
) -> Written:
    run(connection, statements.MEMORY_BEGIN, {"scope": scope.key, "owner": scope.owner})
    row = one(connection, statements.MEMORY_LOCK, {"scope": scope.key})
    if row is None:
        raise RuntimeError("the head of a scope is never deleted")
    head = _head(scope, row)
    changed = memory.apply(head, asked, most)
    if changed is None:
        return Written(head, changed=False)
    params = {
        **place, "scope": scope.key, "seen": head.revision, "action": asked.action, "taken": changed.taken,
        "put": changed.put, "entries": memory.dump(changed.entries), "author": author,
    }  # fmt: skip
    written = one(connection, statements.MEMORY_WRITE, params)
    if written is None:
        raise RuntimeError("the head of a scope changed under its lock")
    return Written(Head(scope, written["revision"], changed.entries), changed=True)


def _place(place: Run) -> dict[str, object]:
    return {
        "session": place.session, "turn": place.turn, "step": place.step, "ordinal": place.ordinal,
        "fence": place.fence,
    }  # fmt: skip


def _scope(key: str) -> Scope:
    kind, _, owner = key.partition(":")
    return Scope(Kind(kind), UUID(owner) if owner else None)


def _head(scope: Scope, row: DictRow) -> Head:
    return Head(scope, row["revision"], memory.load(row["entries"]))

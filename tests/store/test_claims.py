"""Pick and claim: a limit holds, a session has one runner, nobody starves, however many claim at once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from shared.store.statements import admission, one
from shared.values import TurnClass
from tests.store.conftest import Rows, in_thread, new_boot

EVERY = tuple(TurnClass)


def claim(
    connection: psycopg.Connection,
    *,
    limit: int = 1000,
    classes: Sequence[TurnClass] = EVERY,
    more: Mapping[str, object] | None = None,
) -> dict[str, Any] | None:
    limits = cast("admission.Limits", {**admission.NO_LIMITS, "principal_limit": limit, **(more or {})})
    with connection.transaction():
        one(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
        picked = admission.pick(connection, classes, limits)
        if picked is None:
            return None
        values = {"session": picked["session"], "turn": picked["id"], "holder": new_boot(), "claim": new_boot()}
        return one(connection, admission.CLAIM, values)


def _race(rows: Rows, claimers: int, *, limit: int, **more: Any) -> list[dict[str, Any]]:
    """All claimers start together and claim until nothing is left."""
    barrier = threading.Barrier(claimers)
    found: list[dict[str, Any]] = []
    lock = threading.Lock()

    def work() -> None:
        with rows.connect(autocommit=True) as connection:
            barrier.wait(10)
            while True:
                got = claim(connection, limit=limit, more=more)
                if got is None:
                    return
                with lock:
                    found.append(got)

    threads = [in_thread(work) for _ in range(claimers)]
    for thread in threads:
        thread.join(30)
    return found


def test_a_principals_limit_holds_under_claims_that_race(rows: Rows) -> None:
    """SKIP LOCKED alone lets 10 run where 4 may: the advisory lock is what holds it."""
    for _ in range(20):
        rows.turn(rows.session())
    assert len(_race(rows, 6, limit=4)) == 4
    assert rows.value("select count(*) from turns where status = 'running'") == 4


def test_a_turn_is_claimed_once_and_a_session_runs_one_turn(rows: Rows) -> None:
    sessions = [rows.session() for _ in range(5)]
    for session in sessions:
        for _ in range(3):
            rows.turn(session)
    claimed = _race(rows, 6, limit=1000)
    assert Counter(c["session"] for c in claimed) == Counter(sessions)
    assert rows.value("select count(*) from turns where status = 'running'") == 5


def test_of_a_session_the_first_queued_turn_is_claimed(rows: Rows) -> None:
    session = rows.session()
    first = rows.turn(session)
    rows.turn(session)
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == first


def test_interactive_comes_before_child_job_and_chore(rows: Rows) -> None:
    for turn_class in reversed(list(TurnClass)):
        rows.turn(rows.session(), turn_class, rows.person_named(turn_class))
    order = [claim(rows.connection) for _ in TurnClass]
    assert [c["class"] for c in order if c] == [c.value for c in TurnClass]


def test_a_job_that_has_waited_long_goes_before_a_fresh_question(rows: Rows) -> None:
    job = rows.turn(rows.session(), TurnClass.JOB)
    rows.connection.execute("update turns set admit_key = admit_key - interval '10 minutes' where id = %s", (job,))
    rows.turn(rows.session())
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == job


def test_one_persons_flood_does_not_starve_another(rows: Rows) -> None:
    flooder, other = rows.person_named("flooder"), rows.person_named("other")
    for _ in range(50):
        rows.turn(rows.session(), person=flooder)
    for _ in range(3):
        assert claim(rows.connection) is not None
    short = rows.turn(rows.session(), person=other)
    claimed = claim(rows.connection)
    assert claimed is not None
    assert claimed["turn"] == short


def test_a_session_whose_row_is_locked_is_passed_over(rows: Rows) -> None:
    """A worker frozen inside a transaction must not hold up everybody's claims."""
    blocked, free = rows.session(), rows.session()
    rows.turn(blocked)
    second = rows.turn(free)
    with rows.connect() as holder:
        holder.execute("select 1 from sessions where id = %s for update", (blocked,))
        claimed = claim(rows.connection)
        assert claimed is not None
        assert claimed["turn"] == second


def test_classes_that_were_not_asked_for_are_left(rows: Rows) -> None:
    rows.turn(rows.session(), TurnClass.JOB)
    assert claim(rows.connection, classes=[TurnClass.INTERACTIVE]) is None


def test_two_turns_of_one_session_cannot_run_whatever_the_code_does(rows: Rows) -> None:
    session = rows.session()
    turns = [rows.turn(session), rows.turn(session)]
    fence = rows.value("update sessions set fence = fence + 1 where id = %s returning fence", session)
    run = "update turns set status = 'running', holder = %s, fence = %s where id = %s"
    rows.connection.execute(run, (new_boot(), fence, turns[0]))
    try:
        rows.connection.execute(run, (new_boot(), fence, turns[1]))
    except psycopg.errors.UniqueViolation:
        return
    raise AssertionError("two turns of one session run")


def test_claiming_counts_an_attempt_and_sets_the_deadline_once(rows: Rows) -> None:
    turn = rows.turn(rows.session())
    claim(rows.connection)
    before = _turn(rows, turn)
    assert (before["attempts"], before["deadline_at"] > before["started_at"]) == (1, True)


def _turn(rows: Rows, turn: UUID) -> dict[str, Any]:
    row = rows.connection.cursor(row_factory=dict_row).execute("select * from turns where id = %s", (turn,)).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("limit", "column"), [("job_limit", "job"), ("parent_limit", "parent"), ("profile_limit", "profile"),
                          ("provider_limit", "provider")]
)  # fmt: skip
def test_each_limit_holds_under_claims_that_race(rows: Rows, limit: str, column: str) -> None:
    """Ten of one job, parent, profile or provider's credential, and ten of none that is limited."""
    for at in range(20):
        session = rows.session()
        turn = rows.turn(session, TurnClass.CHILD)
        if at < 10:
            _belongs(rows, session, turn, column)
    claimed = _race(rows, 6, limit=1000, **{limit: 3})
    limited = rows.value(
        "select count(*) from turns t join sessions s on s.id = t.session where t.status = 'running' "
        "and (t.job is not null or t.parent is not null or s.profile = 'narrow' or s.provider = 'narrow')"
    )
    others = 10 if column in ("job", "parent") else 3  # every session has a profile and a provider
    assert (limited, len(claimed)) == (3, 3 + others)


def test_what_runs_on_each_key_of_a_provider_is_part_of_the_claim(rows: Rows) -> None:
    """Ten turns of one provider whose keys take three at once, and five of a session that fell back to it."""
    for at in range(15):
        session = rows.session()
        turn = rows.turn(session, TurnClass.CHILD)
        if at < 10:
            rows.connection.execute("update sessions set provider = 'narrow' where id = %s", (session,))
        else:
            rows.connection.execute("update turns set provider = 'narrow', model = 'm' where id = %s", (turn,))
    _race(rows, 6, limit=1000, provider_names=["narrow", "wide"], provider_mosts=[3, 100])
    assert rows.value("select count(*) from turns where status = 'running'") == 3


def test_turns_on_keys_of_their_own_fill_those_and_not_the_teams(rows: Rows) -> None:
    """Three people with ten turns each: two have keys of their own for two and for one, the team's takes three."""
    for name in ("ann", "ben", "cleo"):
        person = rows.person_named(name)
        for _ in range(10):
            session = rows.session()
            rows.turn(session, TurnClass.CHILD, person)
            rows.connection.execute("update sessions set provider = 'narrow' where id = %s", (session,))
    _race(
        rows, 6, limit=1000, provider_names=["narrow"], provider_mosts=[3], own_providers=["narrow"] * 3,
        own_kinds=["people"] * 3, own_names=["ann", "ben", "a stranger"], own_mosts=[2, 1, 9],
    )  # fmt: skip
    found = rows.connection.execute(
        "select p.name, count(*) from turns t join principals p on p.id = t.requested_by "
        "where t.status = 'running' group by p.name"
    ).fetchall()
    assert dict(found) == {"ann": 2, "ben": 1, "cleo": 3}


def _belongs(rows: Rows, session: UUID, turn: UUID, column: str) -> None:
    match column:
        case "job":
            rows.connection.execute(
                "insert into jobs (id, name, owner, principal, cron, zone, prompt) values (%(j)s, 'j', %(p)s, %(p)s, "
                "'* * * * *', 'UTC', 'p') on conflict do nothing",
                {"j": UUID(int=7), "p": rows.person},
            )
            rows.connection.execute("update turns set job = %s where id = %s", (UUID(int=7), turn))
        case "parent":
            rows.connection.execute(
                "insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, status, "
                "finished_at) values (%s, %s, 'job', %s, now(), 60, 90, 'done', now()) on conflict (id) do nothing",
                (UUID(int=8), session, rows.person),
            )
            rows.connection.execute(
                "update turns set parent = %s, parent_step = 1, parent_ordinal = 1, child_index = seq where id = %s",
                (UUID(int=8), turn),
            )
        case "profile":
            rows.connection.execute("update sessions set profile = 'narrow' where id = %s", (session,))
        case _:
            rows.connection.execute("update sessions set provider = 'narrow' where id = %s", (session,))


def test_a_flood_of_children_does_not_hold_up_the_look_for_a_question(rows: Rows) -> None:
    """The slot that is kept for questions looks through an index of theirs: it reads no row of the flood."""
    flooder = rows.person_named("flooder")
    session = rows.session()
    rows.connection.execute(
        "insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps) "
        "select gen_random_uuid(), %s, 'child', %s, now(), 60, 90 from generate_series(1, 3000)",
        (session, flooder),
    )
    question = rows.turn(rows.session())
    rows.connection.execute("analyze turns")
    plan = rows.connection.execute(
        b"explain (analyze, format text) " + admission.PICK_QUESTION.text.encode(), dict(admission.NO_LIMITS)
    ).fetchall()
    assert not [row[0] for row in plan if "rows=3000" in row[0].partition("actual")[2]]
    claimed = claim(rows.connection, classes=[TurnClass.INTERACTIVE])
    assert claimed is not None
    assert claimed["turn"] == question


@pytest.mark.parametrize("scope", ["fleet", "person", "job", "profile"])
def test_what_an_admin_stopped_is_not_claimed_until_it_is_lifted(rows: Rows, scope: str) -> None:
    session = rows.session()
    turn = rows.turn(session, TurnClass.JOB)
    _belongs(rows, session, turn, "job")
    _belongs(rows, session, turn, "profile")
    subject = {"fleet": None, "person": str(rows.person), "job": str(UUID(int=7)), "profile": "narrow"}[scope]
    other = rows.turn(rows.session(), person=rows.person_named("another"))
    rows.connection.execute(
        "insert into stops (id, scope, subject, placed_by) values (gen_random_uuid(), %s, %s, %s)",
        (scope, subject, rows.person),
    )
    claimed = [claim(rows.connection), claim(rows.connection)]
    assert [c["turn"] for c in claimed if c] == ([] if scope == "fleet" else [other])
    rows.connection.execute("update stops set lifted_at = now(), lifted_by = placed_by")
    lifted = {claimed["turn"] for claimed in (claim(rows.connection), claim(rows.connection)) if claimed}
    assert turn in lifted

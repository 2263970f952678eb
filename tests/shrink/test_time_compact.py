"""A compaction that a person asks for: made once, by its own turn, or by the turn that runs."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from deploy.local.servers import Servers
from shared.ids import uuid7
from shared.store import intake
from shared.values import OnBusy, TurnClass
from tests.api.conftest import fresh_database
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import GOOD, long_session, todo
from tests.shrink.conftest import Bodies, assert_replayed
from tests.shrink.travel import ask_compact, broken, came_of, compacted, restored, rewound, said, shown


@pytest.fixture(scope="module")
def worker(
    servers: Servers, template: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    home = tmp_path_factory.mktemp("home")
    with (
        fresh_database(servers, template) as url,
        ground(url, servers.valkey.url, provider.url, home, tail_messages=4, tail_tokens=20_000) as made,
    ):
        yield made


def test_an_idle_session_is_compacted_by_a_turn_of_its_own_and_tells_by_how_much(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = long_session(worker, provider, [{"text": GOOD}])
    came = compacted(worker, session)
    assert came["outcome"]["fallback"] is None
    assert came["tokens_after"] < came["tokens_before"] / 2
    edit = worker.one("select * from edits where id = %s", came["edit"])
    assert (edit["kind"], edit["cause"], edit["first"], edit["last"]) == (
        "summary", "asked", came["first"], came["last"],
    )  # fmt: skip
    calls = worker.rows("select purpose from calls where turn = %s", came["turn"])
    assert [call["purpose"] for call in calls] == ["summary"]
    said(worker, provider, session, "And now?", "went on")
    assert shown(worker, session)[-2:] == ["And now?", "went on"]
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_a_turn_that_runs_makes_it_at_its_boundary_and_the_turn_that_was_meant_for_it_finds_nothing(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = long_session(worker, provider, [{"text": GOOD}], [{"text": "went on"}])
    turn = worker.turn(session, "And now?")
    made = ask_compact(worker, session)
    assert ask_compact(worker, session).request == made.request
    assert worker.look_once(TurnClass.INTERACTIVE) == 1
    found = came_of(worker, session, made)
    assert (found["outcome"]["result"], found["turn_status"]) == ("done", "queued")
    assert worker.view(turn)["answer"] == "went on"
    worker.look()
    assert came_of(worker, session, made)["turn_status"] == "done"
    calls = worker.rows("select turn, purpose from calls where session = %s order by seq desc limit 2", session)
    assert [(call["turn"], call["purpose"]) for call in calls] == [(turn, "main"), (turn, "summary")]
    assert_replayed(worker, session, bodies(session))


def test_a_compaction_whose_worker_was_lost_before_it_said_so_is_not_made_twice(
    worker: Ground, provider: Rehearsal
) -> None:
    session = long_session(worker, provider, [{"text": GOOD}] * 2)
    came = compacted(worker, session)
    again = uuid7()
    chore = intake.NewTurn(session, worker.person, TurnClass.CHORE, None, deadline_s=600, max_steps=1, id=again)
    worker.database.read(lambda c: intake.admit(c, chore, on_busy=OnBusy.QUEUE, queue_bound=9))
    worker.execute(
        "update inbox set turn = %s, folded_into = null, folded_at = null, edit = null, outcome = null where id = %s",
        again, came["id"],
    )  # fmt: skip
    worker.look()
    found = worker.one("select edit, outcome from inbox where id = %s", came["id"])
    assert found["edit"] == came["edit"]
    assert len(worker.rows("select 1 from calls where session = %s and purpose = 'summary'", session)) == 1


def test_where_nothing_can_be_gained_the_answer_says_so(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    said(worker, provider, session, "hello", "hello")
    made = ask_compact(worker, session)
    worker.look()
    found = came_of(worker, session, made)
    assert (found["outcome"]["result"], found["edit"], found["turn_status"]) == ("skipped", None, "done")
    assert found["outcome"]["message"]


def test_a_rewind_past_a_summary_gives_the_raw_messages_back(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    turns = [said(worker, provider, session, f"nr {n}", {"text": f"step {n}", "tools": [todo(n)]}, f"done {n}")
             for n in range(6)]  # fmt: skip
    stood = shown(worker, session)
    provider.script([{"text": GOOD}], session=str(session), summaries=True)
    compacted(worker, session)
    assert "canary-7" in " ".join(shown(worker, session))
    assert "step 2" not in shown(worker, session)
    rewound(worker, session, turns[3])
    assert shown(worker, session) == stood[: stood.index("nr 3")]
    said(worker, provider, session, "Again?", "yes")
    restored(worker, session)
    assert "canary-7" in " ".join(shown(worker, session))
    assert shown(worker, session)[-3:] == ["done 5", "Again?", "yes"]
    said(worker, provider, session, "Still?", "yes")
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))

"""The two summaries that nothing presses for: the oldest exchange after each turn, and a conversation that fell silent.
Both are off until a person turns them on, and stop where the others stop."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from scheduler.idleness import compact as admit_idle
from scheduler.room import Room
from shared import stream
from shared.request.marked import Ttl
from shared.store import asked as asked_of
from shared.store import intake
from shared.store.pool import Connection
from shared.values import OnBusy, TurnClass
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import GOOD, todo
from tests.shrink.conftest import Bodies, advance, assert_replayed
from workers.reduction.decide import Compact, Decision, Keep, Prune, Rules, decide
from workers.reduction.meters import ASSUMED, Gap
from workers.reduction.sizes import Sizes
from workers.reduction.state import Context

IDLE_S = 1_800.0


@pytest.fixture(scope="module")
def folding(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    more: dict[str, Any] = {"tail_messages": 2, "prune_warm": False, "prune_cold": False, "micro_compaction": True}
    more |= {"idle_compaction_s": IDLE_S, "idle_compaction_tokens": 20_000}
    with ground(module_database_url, servers.valkey.url, provider.url, tmp_path_factory.mktemp("f"), **more) as made:
        yield made


def without_micro(worker: Ground, **more: Any) -> Ground:
    return _with(worker, micro_compaction=False, **more)


def _with(worker: Ground, **changed: Any) -> Ground:
    settings = worker.settings.model_copy(update=changed)
    return dataclasses.replace(worker, settings=settings, ports=dataclasses.replace(worker.ports, settings=settings))


def turn(worker: Ground, session: UUID, text: str) -> UUID:
    made = worker.turn(session, text)
    worker.look()
    assert worker.view(made)["status"] == "done"
    return made


def decided(worker: Ground, session: UUID) -> list[tuple[str, str]]:
    query = "select decision, cause from reductions where session = %s and decision <> 'set_ttl' order by id"
    return [(row["decision"], row["cause"]) for row in worker.rows(query, session)]


def summaries(worker: Ground, session: UUID) -> list[dict[str, Any]]:
    return worker.rows("select * from edits where session = %s and kind = 'summary' order by id", session)


def exchanges(worker: Ground, provider: Rehearsal, count: int, *summary: dict[str, Any]) -> UUID:
    """A session of so many exchanges, each larger than the one before, and what its summariser says."""
    session = worker.session()
    replies: list[dict[str, Any]] = []
    for n in range(count):
        look = {"text": f"look {n}", "tools": [todo(n, 40 + 10 * n)]}
        replies += [look, look, {"text": f"did {n}"}]
    provider.script(replies, session=str(session))
    provider.script(list(summary) or [{"text": GOOD}] * count, session=str(session), summaries=True)
    return session


def asked(sent: bytes) -> str:
    return str(json.loads(sent)["messages"][-1]["content"][-1].get("text", ""))


def test_after_a_turn_the_oldest_exchange_is_folded_into_the_summary_before_it(
    folding: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = exchanges(folding, provider, 4)
    turns = [turn(folding, session, f"question {n}") for n in range(4)]
    found = summaries(folding, session)
    assert decided(folding, session) == [("compact", "micro")] * len(found)
    assert len(found) == 3
    assert [one["first"] for one in found] == [found[0]["first"]] * 3, "each takes the one before it in"
    assert found[0]["last"] < found[1]["last"] < found[2]["last"]
    sent = bodies(session)
    until = [asked(body) for body in sent if "summary of the conversation" in asked(body)]
    assert [f"begins with “question {n + 1}”" in words for n, words in enumerate(until)] == [True] * 3, "where to stop"
    standing = [b"look 0" in sent[-1], b"look 3" in sent[-1], b"question 3" in sent[-1]]
    assert standing == [False, True, True]
    row = folding.one("select regrow_to, verdict_due from sessions where id = %s", session)
    newest = found[-1]
    taken = newest["tokens_before"] - newest["tokens_after"]
    assert row == {"regrow_to": newest["tokens_after"] + taken, "verdict_due": True}, "the runway is on the row"
    (event,) = [event.data for event in folding.events(turns[-1]) if event.kind == "context.reduced"]
    assert (event["decision"], event["cause"]) == ("compact", "micro")
    assert_replayed(folding, session, sent)


def test_a_summary_that_nothing_presses_for_leaves_the_past_where_the_model_fails_and_waits_like_any_other(
    folding: Ground, provider: Rehearsal
) -> None:
    session = exchanges(folding, provider, 4, {"text": "no summary"})
    for n in range(4):
        turn(folding, session, f"question {n}")
    assert decided(folding, session) == [("skipped", "micro"), ("blocked", "micro")]
    assert summaries(folding, session) == []
    row = folding.one("select * from sessions where id = %s", session)
    assert (row["fallback_streak"], row["summary_failures"], row["compact_last"]) == (1, 1, "nothing")
    assert row["summary_after"] is not None


def admitted(worker: Ground, session: UUID) -> int:
    """How many housekeeping turns the session has, after the scheduler has looked."""
    client = stream.connect(worker.settings.redis_url)
    admit_idle(Room(worker.settings, worker.database, worker.ports.doorbell, client))
    return worker.one("select count(*) as n from turns where session = %s and class = 'chore'", session)["n"]


def test_a_conversation_that_fell_silent_is_summarised_once_by_a_housekeeping_turn(
    folding: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    quiet = without_micro(folding)
    session = exchanges(quiet, provider, 5)
    small = exchanges(quiet, provider, 1)
    for n in range(5):
        turn(quiet, session, f"question {n}")
    turn(quiet, small, "question 0")
    assert admitted(quiet, session) == 0, "nobody is away yet"
    advance(quiet, IDLE_S + 1)
    assert admitted(_with(quiet, idle_compaction_s=None), session) == 0, "off until it is turned on"
    assert [admitted(quiet, session), admitted(quiet, session)] == [1, 1], "one turn is enough"
    quiet.look()
    assert decided(quiet, session) == [("compact", "idle")]
    assert decided(quiet, small) == []
    (found,) = quiet.rows("select arithmetic, turn from reductions where session = %s and cause = 'idle'", session)
    told = json.loads(found["arithmetic"])
    assert (told["idle_s"], told["idle_from"], told["cold"]) == (IDLE_S, 20_000, True)
    assert quiet.view(found["turn"])["class"] == "chore"
    assert quiet.view(found["turn"])["status"] == "done"
    advance(quiet, 2 * IDLE_S)
    assert admitted(quiet, session) == 1, "once a silence"
    provider.script([{"text": "welcome back"}], session=str(session))
    turn(quiet, session, "I am back")
    assert_replayed(quiet, session, bodies(session))


def test_who_came_back_meanwhile_is_not_summarised(folding: Ground, provider: Rehearsal) -> None:
    quiet = without_micro(folding)
    session = exchanges(quiet, provider, 5)
    for n in range(4):
        turn(quiet, session, f"question {n}")
    advance(quiet, IDLE_S + 1)
    back = quiet.turn(session, "question 4")
    assert admitted(quiet, session) == 0, "a turn waits"
    quiet.look()
    assert quiet.view(back)["status"] == "done"
    quiet.database.read(lambda c: _chore(c, quiet, session))
    quiet.look()
    assert decided(quiet, session) == [], "the turn was admitted before somebody spoke"


def test_what_a_person_asks_of_a_silent_conversation_is_all_that_is_done_to_it(
    folding: Ground, provider: Rehearsal
) -> None:
    quiet = without_micro(folding)
    session = exchanges(quiet, provider, 5)
    turns = [turn(quiet, session, f"question {n}") for n in range(5)]
    advance(quiet, IDLE_S + 1)

    def rewind(connection: Connection) -> asked_of.Asked:
        with connection.transaction():
            return asked_of.rewind(connection, session, turns[-1], quiet.person, queue_bound=10)

    request = quiet.database.read(rewind)
    quiet.look()
    assert quiet.view(request.turn)["status"] == "done"
    assert decided(quiet, session) == []


def _chore(connection: Connection, worker: Ground, session: UUID) -> None:
    with connection.transaction():
        new = intake.NewTurn(session, worker.person, TurnClass.CHORE, None, deadline_s=60, max_steps=1)
        intake.admit(connection, new, on_busy=OnBusy.QUEUE, queue_bound=10)


WARM, COLD = Gap(20.0, cold=False), Gap(4_000.0, cold=True)
STATE = Context(Ttl.MINUTES, hold_5m=0.0)
BIG = Sizes(prompt=90_000, room=170_000, middle=30_000, middle_behind=30_000)
MICRO, IDLE = Rules(micro=True), Rules(idle=40_000)


@pytest.mark.parametrize(
    ("rules", "state", "gap", "sizes", "expected"),
    [
        pytest.param(Rules(), STATE, WARM, BIG, Keep(), id="both are off"),
        pytest.param(Rules(), STATE, COLD, BIG, Keep(), id="both are off, cold"),
        pytest.param(MICRO, STATE, WARM, BIG, Compact("micro", Ttl.MINUTES), id="micro"),
        pytest.param(MICRO, STATE, WARM, dataclasses.replace(BIG, middle=3_999), Keep(), id="micro, the floor"),
        pytest.param(
            MICRO, dataclasses.replace(STATE, regrow_to=90_001), WARM, BIG, Keep(), id="micro, the runway is before us"
        ),
        pytest.param(
            MICRO, dataclasses.replace(STATE, regrow_to=90_000), WARM, BIG, Compact("micro", Ttl.MINUTES),
            id="micro, regrown",
        ),
        pytest.param(
            MICRO, STATE, WARM, dataclasses.replace(BIG, prompt=170_000), Compact("threshold", Ttl.MINUTES),
            id="micro, the threshold is first",
        ),
        pytest.param(IDLE, STATE, WARM, BIG, Compact("idle", Ttl.MINUTES), id="idle, still warm"),
        pytest.param(
            IDLE, STATE, COLD, dataclasses.replace(BIG, drop=50_000), Compact("idle", Ttl.MINUTES), id="idle, cold"
        ),
        pytest.param(IDLE, STATE, COLD, dataclasses.replace(BIG, prompt=39_999), Keep(), id="idle, small"),
        pytest.param(
            IDLE, STATE, COLD, dataclasses.replace(BIG, middle=20_000, drop=2_000), Prune("cold", Ttl.MINUTES),
            id="idle, too little to fold",
        ),
    ],
)  # fmt: skip
def test_what_is_decided_where_nothing_presses(
    rules: Rules, state: Context, gap: Gap, sizes: Sizes, expected: Decision
) -> None:
    assert decide(state, ASSUMED, gap, sizes, rules) == expected

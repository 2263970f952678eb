"""Models that stand in for others: a turn over the real loop while its provider is out, and back."""

from __future__ import annotations

from collections.abc import Generator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared.errors import LeaseLost
from shared.store import transcript
from shared.values import TurnClass
from tests.ground import Ground, Rehearsal, ground
from tests.waiting.acts import advance
from workers import prefixing, reserving
from workers.held import Held, Interrupt
from workers.manners.terms import NOT_TOLD, Asked, Limit, Took, Wait
from workers.ports import Ports
from workers.providers import routes
from workers.routing import Ticket

OTHER = "gpt-6.1-sol"
CHAIN: dict[str, Any] = {"fallbacks": f"*=openai:{OTHER}"}


@pytest.fixture
def worker(
    database_url: str, redis_url: str, provider: Rehearsal, other: Rehearsal, tmp_path: Path
) -> Generator[Ground]:
    provider.reset()
    other.reset()
    chain = CHAIN | {"providers": {"openai": {"base_url": other.url}}}
    with ground(database_url, redis_url, provider.url, tmp_path, {"OPENAI_API_KEY": "sk-proj-other"}, **chain) as made:
        yield made


def calls(worker: Ground, turn: UUID) -> list[tuple[str, str, str | None]]:
    query = "select provider, status, refund from calls where turn = %s order by seq"
    return [(row["provider"], row["status"], row["refund"]) for row in worker.rows(query, turn)]


def ask(worker: Ground, session: UUID, text: str, **more: Any) -> tuple[UUID, dict[str, Any]]:
    turn = worker.turn(session, text, **more)
    worker.look()
    return turn, worker.view(turn)


def epochs(worker: Ground, session: UUID) -> list[str]:
    query = "select cause from edits where session = %s and kind = 'prefix' order by id"
    return [row["cause"] for row in worker.rows(query, session)][1:]


def test_a_turn_goes_to_the_next_model_within_its_step_and_the_one_after_the_outage_is_back(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    provider.script([{"text": "first", "thinking": "hm"}, {"text": "back"}])
    other.script([{"text": "second"}, {"text": "third"}])
    session = worker.session()
    _, row = ask(worker, session, "one")
    assert row["answer"] == "first"
    provider.post("down", {"status": 503})
    fallen, row = ask(worker, session, "two")
    assert (row["status"], row["answer"], row["steps"] - row["refunds"]) == ("done", "second", 1)
    made = calls(worker, fallen)
    assert made[-1] == ("openai", "settled", None)
    assert [provider for provider, *_ in made[:-1]] == ["anthropic"] * (len(made) - 1)
    assert len(made) <= 3
    during, row = ask(worker, session, "three")
    assert row["answer"] == "third"
    assert len(epochs(worker, session)) == 1  # it was there already
    provider.post("down", {"status": None})
    after, row = _until_back(worker, session)
    assert row["answer"] == "back"
    causes = epochs(worker, session)
    assert len(causes) == 2
    assert "for about $" in causes[0]
    assert "to anthropic:" in causes[1]
    (told,) = [event.data for event in worker.events(fallen) if event.kind == "model.switched"]
    assert told["to"] == f"openai:{OTHER}"
    assert told["tokens"] > 0
    assert told["cost_usd"] > 0
    for turn in (fallen, during, after):
        for row in worker.rows("select id from calls where turn = %s", turn):
            assert worker.database.read(lambda c, call=row["id"]: transcript.replay(c, call)).agrees


def _until_back(worker: Ground, session: UUID) -> tuple[UUID, dict[str, Any]]:
    """The key rests for a second or so; with the keys' state forgotten it is asked at once."""
    worker.forget_keys()
    return ask(worker, session, "four")


def purposes(worker: Ground, turn: UUID) -> list[tuple[str, str, str]]:
    query = "select provider, purpose, status from calls where turn = %s order by seq"
    return [(row["provider"], row["purpose"], row["status"]) for row in worker.rows(query, turn)]


def test_a_model_that_lists_and_does_not_answer_costs_a_conversation_no_epoch_however_often_it_is_probed(
    worker: Ground, provider: Rehearsal, other: Rehearsal, tmp_path: Path
) -> None:
    provider.script([{"text": "first"}, {"text": "yes"}, {"text": "back"}])
    other.script([{"text": one} for one in ("second", "third", "fourth")])
    session = worker.session()
    ask(worker, session, "one")
    provider.post("down", {"status": 529, "lists": True})
    ask(worker, session, "two")
    for text in ("third", "fourth"):
        advance(worker, 120)
        turn, row = ask(worker, session, "and?")
        assert row["answer"] == text
        assert (row["steps"] - row["refunds"], row["step"]) == (1, 1)
        assert purposes(worker, turn) == [("anthropic", "probe", "failed"), ("openai", "main", "settled")]
    assert len(epochs(worker, session)) == 1
    provider.post("down", {"status": None})
    provider.post("capture", {"directory": str(tmp_path / "sent")})
    advance(worker, 120)
    turn, row = ask(worker, session, "now?")
    provider.post("capture", {"directory": None})
    assert (row["answer"], row["steps"], row["step"]) == ("back", 1, 1)
    assert purposes(worker, turn) == [("anthropic", "probe", "settled"), ("anthropic", "main", "settled")]
    assert len(epochs(worker, session)) == 2
    # What the probe was, is booked and rebuilt like any call, and nothing of the conversation was in it.
    probe, main = worker.rows("select * from calls where turn = %s order by seq", turn)
    buckets = ("input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
    assert sum(probe[one] for one in buckets) < sum(main[one] for one in buckets)
    assert row["spent_usd"] == probe["cost_usd"] + main["cost_usd"]
    billed = [call["usd"] for call in provider.ledger() if call["usd"] is not None]
    assert float(probe["cost_usd"] + main["cost_usd"]) == pytest.approx(sum(billed[-2:]))
    again = worker.database.read(lambda c: transcript.replay(c, probe["id"]))
    assert again.agrees
    assert "and?" not in again.body.decode()
    assert [again.body] == [path.read_bytes() for path in sorted((tmp_path / "sent").glob("*.json"))[:1]]


def probing(worker: Ground) -> float:
    """Somebody else's probe of the sessions' own model is out. When, in milliseconds."""
    fleet, (key,) = worker.ports.routes.fleet, worker.ports.routes.pool("anthropic")
    at = worker.one("select extract(epoch from clock_now())::float8 * 1000 as at")["at"]
    for ago in (20_000, 10_000):
        fleet.cool("anthropic", at - ago, None, 0.25, 60.0)
    probe = fleet.take(Asked("anthropic", (key.id,), (Limit(),), 0.0, at))
    assert isinstance(probe, Took)
    assert probe.strikes == 2
    return at


def test_a_probe_that_hears_nothing_keeps_nobody_from_going_elsewhere(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    provider.script([{"text": "first"}])
    other.script([{"text": "second"}])
    session = worker.session()
    ask(worker, session, "one")
    probing(worker)
    turn, row = ask(worker, session, "two")
    assert (row["status"], row["answer"]) == ("done", "second")
    assert calls(worker, turn) == [("openai", "settled", None)]


def test_while_one_turn_probes_the_others_wait_for_what_it_hears_and_stay_where_they_are(
    worker: Ground, provider: Rehearsal, other: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each turn of the moment in which an outage ends would go elsewhere, and come back: two epochs."""
    provider.script([{"text": "first"}, {"text": "still here"}])
    other.script([{"text": "elsewhere"}])
    session = worker.session()
    ask(worker, session, "one")
    fleet, (key,) = worker.ports.routes.fleet, worker.ports.routes.pool("anthropic")
    at, take = probing(worker), fleet.take
    waited: list[Wait] = []

    def then_it_is_heard(asked: Asked) -> Took | Wait:
        """The probe is answered right after this turn has found it out."""
        got = take(asked)
        if isinstance(got, Wait):
            waited.append(got)
            fleet.tell("anthropic", key.id, NOT_TOLD, at + 1_000, ok=True, strikes=2)
        return got

    monkeypatch.setattr(fleet, "take", then_it_is_heard)
    turn, row = ask(worker, session, "two")
    assert [one.probed for one in waited] == [True]
    assert (row["answer"], calls(worker, turn)) == ("still here", [("anthropic", "settled", None)])
    assert epochs(worker, session) == []


def test_what_fails_for_good_is_tried_once_and_another_model_does_it(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    fault = {"kind": "status", "status": 404, "error_type": "not_found_error", "message": "model: gone"}
    provider.script([{"text": "", "fault": fault}])
    other.script([{"tools": [{"name": "list_files", "input": {"path": "."}}]}, {"text": "done elsewhere"}])
    turn, row = ask(worker, worker.session(), "go")
    assert (row["status"], row["answer"], row["steps"] - row["refunds"]) == ("done", "done elsewhere", 2)
    assert calls(worker, turn) == [
        ("anthropic", "failed", "failover"), ("openai", "settled", None), ("openai", "settled", None),
    ]  # fmt: skip


def test_while_any_link_is_up_no_turn_fails_and_while_none_is_it_sleeps(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    provider.post("down", {"status": 0})
    other.post("down", {"status": 503})
    turn, row = ask(worker, worker.session(), "anybody?")
    assert (row["status"], row["parked_on"], row["error_code"]) == ("parked", "backoff", None)
    assert {name for name, *_ in calls(worker, turn)} == {"anthropic", "openai"}
    other.post("down", {"status": None})
    other.script([{"text": "here"}])
    worker.execute("update turns set status = 'queued', parked_on = null, wake_at = null where id = %s", turn)
    worker.forget_keys()
    worker.look()
    assert worker.view(turn)["answer"] == "here"


def test_a_key_that_was_exchanged_is_read_again_before_anything_else(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LOOK_S", 600.0)
    provider.reset()
    provider.script([{"text": "with the new key"}])
    key = tmp_path / "keys" / "anthropic" / "a"
    key.parent.mkdir(parents=True)
    key.write_text("invalid-old\n")
    key.chmod(0o600)
    with ground(database_url, redis_url, provider.url, tmp_path, provider_key="") as worker:
        (old,) = worker.ports.routes.pool("anthropic")
        key.write_text("new\n")
        turn, row = ask(worker, worker.session(), "go")
        assert row["answer"] == "with the new key"
        assert [status for _, status, _ in calls(worker, turn)] == ["failed", "settled"]
        assert worker.ports.routes.pool("anthropic")[0].id != old.id
        everything = " ".join(str(one) for one in worker.rows("select * from calls where turn = %s", turn))
        assert "invalid-old" not in everything


def test_a_refused_key_is_left_for_the_next_one_of_the_pool(
    database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> None:
    provider.reset()
    provider.script([{"text": "one"}, {"text": "two"}])
    folder = tmp_path / "keys" / "anthropic"
    folder.mkdir(parents=True)
    for name, value in (("a", "invalid-a"), ("b", "good")):
        (folder / name).write_text(value)
        (folder / name).chmod(0o600)
    with ground(database_url, redis_url, provider.url, tmp_path, provider_key="") as worker:
        session = worker.session()
        first, row = ask(worker, session, "go")
        assert row["answer"] == "one"
        assert [status for _, status, _ in calls(worker, first)] == ["failed", "settled"]
        second, row = ask(worker, session, "again")
        assert row["answer"] == "two"
        assert [status for _, status, _ in calls(worker, second)] == ["settled"]  # the fleet knows


def test_a_413_leaves_the_largest_out_and_summarises_nothing(worker: Ground, provider: Rehearsal) -> None:
    fault = {"kind": "status", "status": 413, "error_type": "request_too_large"}
    long = {"path": "a.txt", "content": "word " * 4_000}
    provider.script(
        [{"tools": [{"name": "write_file", "input": long}]}, {"text": "", "fault": fault}, {"text": "it is there"}]
    )
    session = worker.session()
    turn, row = ask(worker, session, "write")
    assert (row["status"], row["answer"], row["steps"] - row["refunds"]) == ("done", "it is there", 2)
    kinds = worker.rows("select kind, cause from edits where session = %s and kind <> 'prefix'", session)
    assert {one["kind"] for one in kinds} == {"stub"}
    assert [status for _, status, _ in calls(worker, turn)] == ["settled", "failed", "settled"]


def test_a_model_without_a_price_under_a_cap_is_left_for_the_next_of_the_chain(
    worker: Ground, other: Rehearsal
) -> None:
    """Its call is booked before it is priced: what is booked must not be asked again for ever."""
    other.script([{"text": "at a known price"}])
    turn, row = ask(worker, worker.session(model="claude-of-no-list"), "go", cap_usd=Decimal(1))
    assert (row["status"], row["answer"]) == ("done", "at a known price")
    assert calls(worker, turn) == [("openai", "settled", None)]


def resting(worker: Ground) -> None:
    """The sessions' own model was left alone, and is not any more: the next call is its probe."""
    at = worker.one("select extract(epoch from clock_now())::float8 * 1000 as at")["at"]
    worker.ports.routes.fleet.cool("anthropic", at - 1_000, 0.5, 0.25, 60.0)


def next_call(worker: Ground) -> Took | Wait:
    (key,) = worker.ports.routes.pool("anthropic")
    at = worker.one("select extract(epoch from clock_now())::float8 * 1000 as at")["at"]
    return worker.ports.routes.fleet.take(Asked("anthropic", (key.id,), (Limit(),), 0.0, at))


def test_a_probe_for_which_there_is_no_money_rests_nobody(
    worker: Ground, provider: Rehearsal, other: Rehearsal
) -> None:
    provider.script([{"text": "first"}])
    session = worker.session()
    ask(worker, session, "one")
    worker.execute("update sessions set spoke = %s where id = %s", f"openai:{OTHER}", session)
    resting(worker)
    turn, row = ask(worker, session, "two", cap_usd=Decimal("0.000001"))
    assert (row["status"], row["parked_on"], purposes(worker, turn)) == ("parked", "money", [])
    took = next_call(worker)
    assert isinstance(took, Took)
    assert took.strikes == 1


@pytest.mark.parametrize(("module", "name"), [(reserving, "reserve"), (prefixing, "switch")])
def test_a_turn_that_loses_its_lease_on_its_way_to_a_probe_gives_it_back(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    """Else its key and its provider are shut to everybody until nobody waits for that probe any more."""

    def lost(*_given: object, **_more: object) -> None:
        raise LeaseLost

    provider.script([{"text": "first"}])
    session = worker.session()
    ask(worker, session, "one")
    spoke = f"openai:{OTHER}" if module is reserving else None
    worker.execute("update sessions set spoke = %s where id = %s", spoke, session)
    resting(worker)
    monkeypatch.setattr(module, name, lost)
    _, row = ask(worker, session, "two")
    assert row["status"] == "running"
    assert isinstance(next_call(worker), Took)


@pytest.mark.parametrize(("reason", "left"), [(Interrupt.DRAIN, "queued"), (Interrupt.CANCEL, "cancelled")])
def test_a_turn_that_must_stop_while_it_probes_begins_no_step_afterwards(
    worker: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch, reason: Interrupt, left: str
) -> None:
    """A drained worker has cut the probe: it cuts once, and would be killed at the call that came next."""

    def cut(_ports: Ports, held: Held, _ticket: Ticket) -> bool:
        held.interrupt(reason)
        return False

    provider.script([{"text": "first"}])
    session = worker.session()
    ask(worker, session, "one")
    worker.execute("update sessions set spoke = %s where id = %s", f"openai:{OTHER}", session)
    resting(worker)
    monkeypatch.setattr("workers.probing.answers", cut)
    turn = worker.turn(session, "two")
    worker.look_once(TurnClass.INTERACTIVE)
    assert (worker.view(turn)["status"], purposes(worker, turn)) == (left, [])
    said = worker.rows("select content from messages where turn = %s", turn)
    assert ["two" in row["content"] for row in said] == [True]

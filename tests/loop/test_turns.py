"""A turn through the loop: claim, call, tools, answer, bill."""

from __future__ import annotations

import dataclasses
import itertools
import json
from decimal import Decimal
from typing import Any, cast

import pytest

from shared.store import transcript
from shared.values import OnBusy
from tests.ground import Ground, Rehearsal
from workers import answering
from workers.held import Interrupt
from workers.pause import Pauses, Point


def _tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


def test_a_turn_without_tools_ends_done_with_the_answer(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"text": "forty-two"}], session=str(session))
    turn = worker.turn(session, "what is six times seven?")

    assert worker.look() == 1

    row = worker.view(turn)
    assert (row["status"], row["answer"], row["error_code"]) == ("done", "forty-two", None)
    assert (row["steps"], row["refunds"], row["step"], row["attempts"]) == (1, 0, 1, 0)
    (call,) = worker.rows("select * from calls where turn = %s", turn)
    (billed,) = provider.ledger(session)
    assert call["status"] == "settled"
    assert call["cost_usd"] == pytest.approx(Decimal(str(billed["usd"])))
    assert row["reserved_usd"] == 0
    assert row["spent_usd"] == call["cost_usd"]
    assert [e.kind.value for e in worker.events(turn)] == [
        "turn.started", "step.started", "text.delta", "step.finished", "turn.finished",
    ]  # fmt: skip


def test_tools_run_and_their_results_come_back_in_emission_order(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script(
        [
            {"text": "let me look", "tools": [_tool("write_file", path="a.txt", content="alpha"), _tool("list_files")]},
            {"tools": [_tool("read_file", path="a.txt")]},
            {"text": "it says alpha"},
        ],
        session=str(session),
    )
    turn = worker.turn(session, "write and read")
    worker.look()

    row = worker.view(turn)
    assert (row["status"], row["answer"], row["step"]) == ("done", "it says alpha", 3)
    runs = worker.rows("select step, ordinal, tool, status from tool_runs where turn = %s order by step, ordinal", turn)
    assert [tuple(r.values()) for r in runs] == [
        (1, 1, "write_file", "done"), (1, 2, "list_files", "done"), (2, 1, "read_file", "done"),
    ]  # fmt: skip
    keys = worker.rows("select step, ordinal, role from messages where session = %s order by id", session)
    assert [tuple(k.values()) for k in keys] == [
        (0, 0, "user"), (1, 0, "assistant"), (1, 1, "user"), (1, 2, "user"), (2, 0, "assistant"), (2, 1, "user"),
        (3, 0, "assistant"),
    ]  # fmt: skip
    assert all(call["extended"] is not False for call in provider.ledger(session))


def test_every_call_of_a_session_is_replayed_byte_for_byte(worker: Ground, provider: Rehearsal, tmp_path: Any) -> None:
    captured = tmp_path / "captured"
    captured.mkdir()
    provider.post("capture", {"directory": str(captured)})
    session = worker.session()
    floats = {"text": "ünï — 1e2", "tools": [_tool("todo", items=[{"text": "ключ\u0000", "done": False}])]}
    provider.script([floats, {"text": "one"}, {"text": "two"}], session=str(session))
    for text in ("first \ud83d\ude00 \u202e", "second"):
        worker.turn(session, text)
        worker.look()
    provider.post("capture", {"directory": None})

    bodies = [path.read_bytes() for path in sorted(captured.glob(f"*{session}*.json"))]
    calls = worker.rows("select id from calls where session = %s order by seq", session)
    assert len(bodies) == len(calls) == 3
    for body, call in zip(bodies, calls, strict=True):
        replayed = worker.database.read(lambda c, call=call: transcript.replay(c, call["id"]))
        assert replayed.agrees
        assert replayed.body == body


def test_a_turn_whose_model_says_nothing_is_asked_once_for_words(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"tools": [_tool("list_files")]}, {"text": ""}, {"text": "a summary"}], session=str(session))
    turn = worker.turn(session, "look")
    worker.look()
    assert worker.view(turn)["answer"] == "a summary"
    purposes = [r["purpose"] for r in worker.rows("select purpose from calls where turn = %s order by seq", turn)]
    assert purposes == ["main", "main", "final"]

    provider.script([{"text": "again"}], session=str(session))
    worker.turn(session, "and now?")
    worker.look()
    last = provider.ledger(session)[-1]
    assert (last["status"], last["cache_read"] > 0) == (200, True)  # the next turn reads what was written before it


def test_what_the_last_call_thought_is_not_sent_again(worker: Ground, provider: Rehearsal) -> None:
    """It was signed behind a prefix without tools, which no later call has: the provider would refuse it."""
    session = worker.session()
    thought = {"thinking": "enough", "text": "a summary"}
    provider.script([{"tools": [_tool("list_files")]}, {"text": ""}, thought, {"text": "again"}], session=str(session))
    worker.turn(session, "look")
    worker.look()
    worker.turn(session, "and now?")
    worker.look()
    assert [call["status"] for call in provider.ledger(session)] == [200] * 4


def test_an_answer_that_was_cut_says_so_and_the_transcript_has_what_the_model_wrote(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    provider.script([{"text": "one, two, th", "stop_reason": "max_tokens"}], session=str(session))
    turn = worker.turn(session, "count to ten")
    worker.look()

    row = worker.view(turn)
    assert (row["status"], row["answer"]) == ("done", f"one, two, th\n\n{answering.CUT}")
    assert worker.events(turn)[-1].data["answer"] == row["answer"]
    said = worker.one("select content from messages where turn = %s and role = 'assistant'", turn)
    assert json.loads(said["content"]) == [{"type": "text", "text": "one, two, th"}]


def test_a_spent_iteration_budget_ends_in_a_summary_without_tools(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"tools": [_tool("list_files")]}] * 4 + [{"text": "what I found"}], session=str(session))
    turn = worker.turn(session, "never stop", max_steps=4)
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["answer"], row["steps"]) == ("done", "what I found", 4)
    sent = worker.rows("select sent from messages where turn = %s and sent is not null", turn)
    assert len(sent) == 1  # at three of four steps
    assert "steps" in json.loads(sent[0]["sent"])[0]["content"][1]["text"]


def test_a_failed_call_is_made_again_and_is_no_new_step(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script(
        [
            {"fault": {"kind": "status", "status": 529}},
            {"text": "half an ans", "chunks": 4, "fault": {"kind": "cut", "after_chunks": 2}},
            {"text": "whole"},
        ],
        session=str(session),
    )
    turn = worker.turn(session, "hello")
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["answer"], row["steps"], row["step"]) == ("done", "whole", 1, 1)
    statuses = [r["status"] for r in worker.rows("select status from calls where turn = %s order by seq", turn)]
    assert statuses == ["failed", "failed", "settled"]
    kinds = [e.kind.value for e in worker.events(turn)]
    assert kinds.count("step.restarted") == 2


def test_a_long_wait_parks_the_turn_and_gives_the_slot_back(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script(
        [{"fault": {"kind": "status", "status": 429, "retry_after": 30}}, {"text": "later"}], session=str(session)
    )
    turn = worker.turn(session, "hello")
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["holder"]) == ("parked", "backoff", None)


def test_a_refused_request_fails_the_turn_with_the_providers_words(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session(model="no-such-model")
    turn = worker.turn(session, "hello")
    worker.look()
    row = worker.view(turn)
    assert row["status"] == "failed"
    assert row["error_code"]
    assert "NIGHTSHIFT_MODEL" in row["error_text"]


def test_a_cap_is_not_overspent_and_says_how_to_raise_it(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    turn = worker.turn(session, "hello", cap_usd=Decimal("0.0001"))
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["parked_on"], row["spent_usd"]) == ("parked", "money", 0)
    (parked,) = [event for event in worker.events(turn) if event.kind == "turn.parked"]
    assert "raise cap_usd of the turn to $" in parked.data["why"]
    assert provider.ledger(session) == []
    messages = worker.rows("select content from messages where session = %s", session)
    assert len(messages) == 1  # the person's words stand


def test_an_unknown_price_under_a_cap_is_refused(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session(model="rehearsal-1", cap_usd=Decimal(1))
    turn = worker.turn(session, "hello")
    worker.look()
    assert worker.view(turn)["error_code"] == "price_unknown"


def test_a_steer_between_steps_is_folded_and_the_turn_goes_on(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"text": "first"}, {"text": "second"}], session=str(session))
    turn = worker.turn(session, "go")
    worker.execute(
        "insert into inbox (session, turn, dedupe_key, kind, author, payload) values (%s, %s, 's', 'steer', %s, %s)",
        session, turn, worker.person, '[{"type":"text","text":"also this"}]',
    )  # fmt: skip
    worker.look()
    assert worker.view(turn)["answer"] == "first"
    roles = [r["role"] for r in worker.rows("select role from messages where session = %s order by id", session)]
    assert roles == ["user", "user", "assistant"]


def test_turns_of_one_session_run_in_order_one_after_another(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    provider.script([{"text": f"answer {n}"} for n in range(5)], session=str(session))
    turns = [worker.turn(session, f"question {n}", on_busy=OnBusy.QUEUE) for n in range(5)]
    worker.look()
    assert [worker.view(t)["answer"] for t in turns] == [f"answer {n}" for n in range(5)]
    for earlier, later in itertools.pairwise(turns):
        assert worker.view(earlier)["finished_at"] <= worker.view(later)["started_at"]


def test_a_steer_that_arrives_while_the_last_answer_is_written_is_not_lost(worker: Ground, provider: Rehearsal) -> None:
    """Finishing locks the turn, then looks into the inbox: the steer goes on with this turn."""
    session = worker.session()
    provider.script([{"text": "first"}, {"text": "with the rest"}], session=str(session))
    turn = worker.turn(session, "go")

    class SteersAfterTheCall:
        done = False

        def inside(self, _: Point) -> bool:
            return False

        def at(self, point: Point) -> None:
            if point is Point.AFTER_CALL and not self.done:
                self.done = True
                worker.execute(
                    "insert into inbox (session, turn, dedupe_key, kind, author, payload) "
                    "values (%s, %s, 'late', 'steer', %s, %s)",
                    session, turn, worker.person, '[{"type":"text","text":"and the rest"}]',
                )  # fmt: skip

    ports = dataclasses.replace(worker.ports, pauses=cast("Pauses", SteersAfterTheCall()))
    Ground(worker.settings, ports, worker.person, worker.home).look()
    row = worker.view(turn)
    assert (row["status"], row["answer"], row["step"]) == ("done", "with the rest", 2)
    assert worker.rows("select id from inbox where folded_into is null") == []


def test_a_cancelled_call_keeps_its_visible_text_and_the_next_turn_works(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    stall = {"kind": "stall", "after_chunks": 2, "seconds": 30}
    provider.script([{"text": "half of it", "chunks": 4, "fault": stall}, {"text": "next"}], session=str(session))
    turn = worker.turn(session, "go")

    class CancelsInTheStream:
        def inside(self, _: Point) -> bool:
            return False

        def at(self, point: Point) -> None:
            held = worker.turns.get(turn)
            if point is Point.IN_STREAM and held is not None:
                held.interrupt(Interrupt.CANCEL)

    ports = dataclasses.replace(worker.ports, pauses=cast("Pauses", CancelsInTheStream()))
    Ground(worker.settings, ports, worker.person, worker.home, worker.turns).look()
    row = worker.view(turn)
    assert (row["status"], row["answer"]) == ("cancelled", None)
    (call,) = worker.rows("select status, cost_assumed from calls where turn = %s", turn)
    assert tuple(call.values()) == ("cut", True)
    kept = worker.one("select cut, content from messages where turn = %s and role = 'assistant'", turn)
    assert kept["cut"]
    assert "hal" in kept["content"]
    following = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(following)["answer"] == "next"

"""A turn through the loop: claim, call, tools, answer, bill."""

from __future__ import annotations

from tests.ground import Ground, Rehearsal


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
    assert float(call["cost_usd"]) > 0
    assert row["reserved_usd"] == 0
    assert [e.kind.value for e in worker.events(turn)] == [
        "turn.started", "step.started", "text.delta", "step.finished", "turn.finished",
    ]  # fmt: skip
    assert billed["status"] == 200

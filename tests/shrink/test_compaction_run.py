"""A compaction on real servers: what the provider is asked, what it accepts afterwards, and what stands on the rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.request import edits as edit_rules
from shared.store import transcript
from tests.ground import Ground, Rehearsal
from tests.shrink.compacting import GOOD, claim, compact, go_on, long_session, todo
from tests.shrink.conftest import Bodies, assert_replayed
from workers.compaction import instruction, run

WENT_ON: dict[str, Any] = {"thinking": "hm", "text": "went on"}


def test_a_summary_stands_for_the_middle_and_the_conversation_goes_on(
    shared: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = long_session(shared, provider, [{"text": GOOD}], [WENT_ON])
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = compact(shared, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    assert came.tokens_after < came.tokens_before / 2
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on"
    sent = [json.loads(body) for body in bodies(session)]
    asked, after = sent[-2], sent[-1]
    assert asked["messages"][-1]["content"][-1]["text"].startswith(instruction.OPENING)
    assert asked["tools"] == sent[0]["tools"]
    shown = [block for message in after["messages"] for block in message["content"]]
    texts = [block["text"] for block in shown if block["type"] == "text"]
    assert "Do the long work. It must not touch the ledger." in texts[0]
    assert sum("canary-7" in text for text in texts) == 1
    assert not any("step 2" in text for text in texts)
    assert [text for text in texts if text in ("Is it done?", "And now?")] == ["Is it done?", "And now?"]
    assert [call["extended"] for call in provider.ledger(session)][:-1] == [None, *[True] * (len(sent) - 2)]
    assert_replayed(shared, session, bodies(session))


def test_the_summariser_reads_the_cache_that_the_session_wrote(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}])
    shared.turn(session, "And now?")
    held = claim(shared)
    compact(shared, held)
    before, asked = provider.ledger(session)[-2:]
    assert asked["cache_read"] == before["cache_read"] + before["cache_write_5m"] + before["cache_write_1h"]
    assert asked["cache_write_5m"] + asked["cache_write_1h"] == 0, "nobody would read it"


def test_what_a_compaction_costs_and_changes_stands_on_the_rows(shared: Ground, provider: Rehearsal) -> None:
    session = long_session(shared, provider, [{"text": GOOD}])
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = compact(shared, held)
    assert isinstance(came, run.Compacted)
    call = shared.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert (call["purpose"], call["status"], call["error_code"]) == ("summary", "settled", None)
    assert call["cost_usd"] > 0
    row = shared.one("select * from sessions where id = %s", session)
    assert row["reserved_usd"] == 0
    assert row["spent_usd"] == shared.one("select sum(cost_usd) as usd from calls where session = %s", session)["usd"]
    assert row["spent_usd"] == held.money.session_spent
    assert (row["verdict_due"], row["fallback_streak"], row["compact_last"]) == (True, 0, "summary")
    assert held.context.verdict_due
    assert row["chain_digest"] is None
    assert row["last_edit"] == held.last_edit
    (edit,) = shared.rows("select * from edits where session = %s and kind = 'summary'", session)
    assert (edit["id"], edit["first"], edit["last"]) == (came.edit, came.first, came.last)
    assert (edit["tokens_before"], edit["tokens_after"]) == (came.tokens_before, came.tokens_after)
    (decided,) = shared.rows("select * from reductions where session = %s", session)
    assert (decided["decision"], decided["cause"], decided["first_edit"]) == ("compact", "threshold", came.edit)
    assert json.loads(decided["arithmetic"])["prompt"] == 1
    told = [event for event in shared.events(turn) if event.kind == "context.reduced"]
    assert [event.data["tokens_after"] for event in told] == [came.tokens_after]
    assert shared.view(turn)["steps"] == 0, "a summary is no step of the turn"


def test_a_second_summary_takes_the_first_one_in(shared: Ground, provider: Rehearsal) -> None:
    more = [{"text": f"more {n}", "tools": [todo(n)]} for n in range(5)]
    session = long_session(shared, provider, [{"text": GOOD}] * 2, [*more, {"text": "done"}])
    shared.turn(session, "And now?")
    held = claim(shared)
    compact(shared, held)
    go_on(shared, held)
    shared.turn(session, "And then?")
    held = claim(shared)
    came = compact(shared, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    past = edit_rules.apply(shared.database.read(lambda c: transcript.load_edits(c, session)))
    assert [summary.id for summary in past.summaries] == [came.edit]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("summary_empty", {"text": "   "}),
    ("summary_tool_call", {"text": GOOD, "tools": [todo(1, 2)]}),
    ("summary_too_long", {"text": "and on " * 20_000}),
    ("api_error", {"fault": {"kind": "status", "status": 500}}),
    ("authentication_error", {"fault": {"kind": "status", "status": 401, "error_type": "authentication_error"}}),
    ("provider_cut", {"text": GOOD, "fault": {"kind": "cut"}}),
]


@pytest.mark.parametrize(("code", "reply"), WRONG, ids=[code for code, _ in WRONG])
def test_a_summariser_that_fails_is_replaced_by_what_the_rows_tell(
    shared: Ground, provider: Rehearsal, code: str, reply: dict[str, Any]
) -> None:
    session = long_session(shared, provider, [reply], [WENT_ON], steps=4)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = compact(shared, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback == code
    assert came.tokens_after < came.tokens_before
    row = shared.one("select * from sessions where id = %s", session)
    assert (row["fallback_streak"], row["summary_failures"], row["compact_last"]) == (1, 1, "fallback")
    rest_s = (row["summary_after"] - row["compacted_at"]).total_seconds()
    assert rest_s >= (900 if code == "authentication_error" else 30)
    assert row["spent_usd"] == held.money.session_spent
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on"


def test_the_rehearsals_own_summary_of_a_long_conversation_is_believed(shared: Ground, provider: Rehearsal) -> None:
    """Without a script: what it quotes passes every check, and the constraint that was told first is in it."""
    session = long_session(shared, provider, [], [WENT_ON], steps=12)
    turn = shared.turn(session, "And now?")
    held = claim(shared)
    came = compact(shared, held)
    assert isinstance(came, run.Compacted)
    assert came.fallback is None
    text = shared.one("select text from edits where id = %s", came.edit)["text"]
    assert "It must not touch the ledger." in text.split("## Constraints")[1].split("## ")[0]
    go_on(shared, held)
    assert shared.view(turn)["answer"] == "went on"

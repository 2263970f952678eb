"""The cursor rules: whatever dies, a client's text ends equal to the answer, without loss or repeat."""

from __future__ import annotations

import threading
import time
from uuid import UUID

import pytest

from deploy.drill.rig import slack
from shared.values import EventKind
from tests.api.hand import Hand
from tests.api.serving import Api, Person, serving
from tests.api.watching import Fold, follow, watching


def _turn(person: Person) -> str:
    return person.turn(person.session())


def _take(person: Person, turn: str, fold: Fold, count: int) -> None:
    """Watch on from where `fold` is, for that many events, then hang up."""
    with watching(person, turn, fold.last_id) as events:
        for _ in range(count):
            fold.take(next(events))


def test_a_viewer_from_the_beginning_sees_every_event_in_order(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.say(turn, EventKind.TURN_STARTED, attempt=1)
    hand.step(turn, "Hello, world")
    hand.finish(turn, "Hello, world")
    fold = follow(anna, turn)
    assert fold.kinds == [
        "turn.started", "step.started", "text.delta", "text.delta", "text.delta", "step.finished", "turn.finished",
    ]  # fmt: skip
    assert fold.text == "Hello, world"
    assert fold.end is not None
    assert {"status": "done", "answer": "Hello, world", "error": None}.items() <= fold.end.items()


def test_a_queued_turn_says_so_and_goes_on_when_it_is_claimed(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    fold = Fold()
    with watching(anna, turn) as events:
        fold.take(next(events))
        hand.claim(turn)
        hand.step(turn, "soon")
        hand.finish(turn, "soon")
        for event in events:
            fold.take(event)
    assert fold.kinds[0] == "turn.queued"
    assert fold.kinds[-1] == "turn.finished"
    assert fold.text == "soon"


def test_a_reconnect_after_any_event_neither_loses_nor_repeats_one(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.say(turn, EventKind.TURN_STARTED, attempt=1)
    for text in ("first of all ", "then this ", "and the end"):
        hand.step(turn, text, pieces=4)
    hand.finish(turn, "and the end")
    whole = follow(anna, turn)
    fold = Fold()
    while fold.end is None:
        _take(anna, turn, fold, 1)
    assert fold.ids == whole.ids
    assert fold.kinds == whole.kinds
    assert fold.texts == whole.texts == {1: "first of all ", 2: "then this ", 3: "and the end"}


def test_what_others_tell_stands_where_it_came_and_disturbs_no_text(anna: Person, hand: Hand) -> None:
    """In the middle of a step, between two, while the turn sleeps, and after another holder has taken it."""
    turn = _turn(anna)
    hand.claim(turn)
    hand.say(turn, EventKind.STEP_STARTED)
    hand.delta(turn, "one ")
    hand.aside(turn, EventKind.CHILD_FINISHED, index=0)
    hand.delta(turn, "and two")
    hand.say(turn, EventKind.STEP_FINISHED, step=hand.commit(turn, "one and two"), text="one and two")
    hand.aside(turn, EventKind.CHILD_FINISHED, index=1)
    hand.say(turn, EventKind.TURN_PARKED, reason="children")
    hand.park(turn, "children")
    hand.aside(turn, EventKind.CHILD_FINISHED, index=2)
    hand.requeue(turn)
    hand.claim(turn)
    hand.aside(turn, EventKind.CHILD_FINISHED, index=3)
    hand.step(turn, "the end", pieces=1)
    hand.finish(turn, "the end")
    whole = follow(anna, turn)
    assert whole.kinds == [
        "step.started", "text.delta", "child.finished", "text.delta", "step.finished", "child.finished", "turn.parked",
        "child.finished", "child.finished", "step.started", "text.delta", "step.finished", "turn.finished",
    ]  # fmt: skip
    assert whole.texts == {1: "one and two", 2: "the end"}
    for count in range(1, len(whole.ids)):  # who comes back behind any of them ends with the same texts
        fold = Fold()
        _take(anna, turn, fold, count)
        assert follow(anna, turn, fold).texts == whole.texts


def test_who_comes_back_after_the_terminal_event_gets_nothing_more(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "done")
    last = hand.finish(turn, "done")
    follow(anna, turn)
    answer = anna.http.get(f"/v1/turns/{turn}/events", headers={"last-event-id": last})
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("cursor", ["9.9.9", "1.99999.3", "garbage", "0.0.0", "١.٢.٣", "-1.2.3", "1.2"])
def test_a_stale_future_or_foreign_cursor_is_answered_first_by_a_snapshot(
    anna: Person, hand: Hand, cursor: str
) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "one ")
    hand.say(turn, EventKind.STEP_STARTED)
    hand.delta(turn, "tw")
    fold = Fold(texts={7: "from another turn"})
    with watching(anna, turn, cursor) as events:
        fold.take(next(events))
        assert fold.kinds == ["snapshot"]
        assert fold.texts == {1: "one ", 2: "tw"}
        hand.delta(turn, "o")
        step = hand.commit(turn, "two")
        hand.say(turn, EventKind.STEP_FINISHED, step=step, text="two")
        hand.finish(turn, "two")
        for event in events:
            fold.take(event)
    assert fold.texts == {1: "one ", 2: "two"}
    assert fold.kinds == ["snapshot", "text.delta", "step.finished", "turn.finished"]


def test_a_snapshot_carries_the_turn_and_the_committed_steps(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "one ")
    hand.flush()
    with watching(anna, turn, "1.1.2") as events:
        data = next(events)["data"]
    assert data["turn"]["id"] == turn
    assert data["turn"]["status"] == "running"
    assert data["steps"] == [{"step": 1, "text": "one ", "committed": True}]
    assert data["text"] == "one "


def test_a_flush_in_mid_step_ends_in_the_committed_text(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "one ")
    fold = Fold()
    with watching(anna, turn) as events:
        hand.say(turn, EventKind.STEP_STARTED)
        hand.delta(turn, "he")
        while fold.texts.get(2) != "he":
            fold.take(next(events))
        hand.delta(turn, "ll", lost=True)
        hand.flush()
        hand.delta(turn, "o")
        step = hand.commit(turn, "hello")
        hand.say(turn, EventKind.STEP_FINISHED, step=step, text="hello")
        hand.finish(turn, "hello")
        for event in events:
            fold.take(event)
    assert fold.texts == {1: "one ", 2: "hello"}
    assert "snapshot" in fold.kinds


def test_a_reader_that_begins_after_a_flush_knows_that_text_is_missing(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "one ")
    hand.delta(turn, "he")
    hand.flush()
    hand.delta(turn, "llo")
    fold = Fold()
    with watching(anna, turn) as events:
        fold.take(next(events))
        assert fold.texts == {1: "one "}
        step = hand.commit(turn, "hello")
        hand.say(turn, EventKind.STEP_FINISHED, step=step, text="hello")
        hand.finish(turn, "hello")
        for event in events:
            fold.take(event)
    assert fold.texts == {1: "one ", 2: "hello"}


def test_a_takeover_in_mid_step_voids_what_was_shown(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    fold = Fold()
    hand.delta(turn, "half a sent")
    with watching(anna, turn) as events:
        fold.take(next(events))
        hand.requeue(turn)
        hand.claim(turn)
        hand.say(turn, EventKind.TURN_STARTED, attempt=2)
        hand.step(turn, "another sentence")
        hand.finish(turn, "another sentence")
        for event in events:
            fold.take(event)
    assert fold.texts == {1: "another sentence"}
    assert "step.restarted" in fold.kinds


def test_a_step_that_was_committed_but_never_told_of_is_not_voided_by_a_takeover(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    fold = Fold()
    hand.delta(turn, "commit")
    with watching(anna, turn) as events:
        fold.take(next(events))
        hand.commit(turn, "committed ")  # and then the worker died, before it told anyone
        hand.requeue(turn)
        hand.claim(turn)
        hand.say(turn, EventKind.TURN_STARTED, attempt=2)
        hand.step(turn, "the end")
        hand.finish(turn, "the end")
        for event in events:
            fold.take(event)
    assert fold.texts == {1: "committed ", 2: "the end"}


def test_events_below_the_highest_fence_are_dropped(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    old = hand.claim(turn)
    hand.requeue(turn)
    hand.claim(turn)
    fold = Fold()
    with watching(anna, turn) as events:
        hand.delta(turn, "right")
        while "text.delta" not in fold.kinds:
            fold.take(next(events))
        hand.redis.delete(f"ns:turn:{turn}:fence")  # a flush takes the stream's own fence with it
        hand.say(turn, EventKind.TEXT_DELTA, text="late and wrong", fence=old)
        step = hand.commit(turn, "right")
        hand._n[UUID(turn)] -= 1
        hand.say(turn, EventKind.STEP_FINISHED, step=step, text="right")
        hand.finish(turn, "right")
        for event in events:
            fold.take(event)
    assert fold.text == "right"
    assert "late and wrong" not in str(fold)


def test_a_terminal_turn_without_a_stream_is_told_from_its_rows(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    hand.step(turn, "one ")
    hand.step(turn, "two")
    hand.finish(turn, "two")
    hand.flush()
    fold = follow(anna, turn)
    assert fold.texts == {1: "one ", 2: "two"}
    assert fold.kinds == ["snapshot", "turn.finished"]
    assert fold.end is not None
    assert fold.end["answer"] == "two"


def test_a_lost_terminal_event_is_made_from_the_row(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    fold = Fold()
    with watching(anna, turn) as events:
        hand.step(turn, "all of it")
        hand.end(turn, "failed", None, "worker_lost_repeatedly")
        for event in events:
            fold.take(event)
    assert fold.end is not None
    assert fold.end["status"] == "failed"
    assert fold.end["error"]["code"] == "worker_lost_repeatedly"
    assert fold.texts == {1: "all of it"}


def test_a_park_that_the_stream_lost_is_told_by_a_snapshot_and_each_park_once(anna: Person, hand: Hand) -> None:
    """Who waits for a person must learn of it though Redis was away at that moment."""
    turn = _turn(anna)
    hand.claim(turn)
    fold = Fold()
    with watching(anna, turn) as events:
        hand.step(turn, "I ask")
        while "step.finished" not in fold.kinds:
            fold.take(next(events))
        hand.park(turn, "approval")
        hand.say(turn, EventKind.TURN_PARKED, reason="approval", lost=True)
        told = next(events)
        assert (told["event"], told["data"]["turn"]["parked_on"]) == ("snapshot", "approval")
        assert told["data"]["text"] == "I ask"
        time.sleep(3.5)  # longer than the feed takes to make good what it misses
        hand.requeue(turn)
        hand.claim(turn)
        hand.say(turn, EventKind.TURN_STARTED, attempt=2)
        hand.park(turn, "approval")
        hand.say(turn, EventKind.TURN_PARKED, reason="approval")
        time.sleep(3.5)
        hand.requeue(turn)
        hand.claim(turn)
        hand.step(turn, "done")
        hand.finish(turn, "done")
        rest = Fold()
        for event in events:
            rest.take(event)
    assert [kind for kind in rest.kinds if kind in {"snapshot", "turn.parked"}] == ["turn.parked"]


def test_a_cancelled_turn_that_waited_ends_its_stream(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    fold = Fold()
    with watching(anna, turn) as events:
        fold.take(next(events))
        begun = time.monotonic()
        assert anna.post(f"/v1/turns/{turn}/cancel").status_code == 202
        for event in events:
            fold.take(event)
    assert fold.kinds == ["turn.queued", "turn.finished"]
    assert fold.end is not None
    assert fold.end["status"] == "cancelled"
    assert time.monotonic() - begun < 3 * slack()


def test_a_token_revoked_while_streaming_ends_the_stream(api: Api, anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    begun = time.monotonic()
    with anna.http.stream("GET", f"/v1/turns/{turn}/events") as answer:
        api.execute("update tokens set revoked_at = clock_now() where principal = %s", anna.id)
        lines = list(answer.iter_lines())
    assert ": the token was revoked" in lines
    assert time.monotonic() - begun < 3 * slack()
    assert anna.get(f"/v1/turns/{turn}").status_code == 401


def test_two_processes_can_serve_one_client_in_turns(api: Api, anna: Person, hand: Hand) -> None:
    """What one process missed by a flush must not spoil the text of who comes back to it from another."""
    turn = _turn(anna)
    hand.claim(turn)
    with serving(api.settings) as other:
        there = Person(anna.id, anna.name, anna.token, other.client(anna.token))
        fold = Fold()
        hand.delta(turn, "a")
        with watching(anna, turn) as events:
            fold.take(next(events))
            hand.delta(turn, "b", lost=True)
            hand.delta(turn, "c")
        # This process saw the gap; the other one begins with what is left after a flush.
        hand.flush()
        hand.delta(turn, "d")
        with watching(there, turn, fold.last_id) as events:
            fold.take(next(events))
            step = hand.commit(turn, "abcd")
            hand.say(turn, EventKind.STEP_FINISHED, step=step, text="abcd")
            while fold.texts != {1: "abcd"}:
                fold.take(next(events))
        hand.step(turn, "end")
        hand.finish(turn, "end")
        follow(anna, turn, fold)
    assert fold.texts == {1: "abcd", 2: "end"}


def test_a_thousand_lines_of_history_come_whole(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    hand.claim(turn)
    text = "".join(f"line {n} of many; " for n in range(1500))
    hand.step(turn, text, pieces=1500)
    hand.finish(turn, text)
    assert follow(anna, turn).text == text


def test_many_viewers_of_one_turn_all_end_with_the_answer(anna: Person, hand: Hand) -> None:
    turn = _turn(anna)
    folds = [Fold() for _ in range(20)]
    threads = [threading.Thread(target=follow, args=(anna, turn, fold)) for fold in folds]
    for thread in threads:
        thread.start()
    hand.claim(turn)
    for n in range(5):
        hand.step(turn, f"part {n} ", pieces=5)
    hand.finish(turn, "part 4 ")
    for thread in threads:
        thread.join(20)
    assert {fold.text for fold in folds} == {"part 0 part 1 part 2 part 3 part 4 "}

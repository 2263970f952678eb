"""The fold: the text that a reader ends with equals the answer, whatever was lost, repeated or restarted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from api.cli.fold import Added, Dropped, Event, Folded, Voided, fold

Texts = st.lists(st.text(max_size=8), min_size=1, max_size=5)


def _fold(events: list[Event]) -> Folded:
    state = Folded()
    for event in events:
        state, _ = fold(state, event)
    return state


@st.composite
def _lives(draw: st.DrawFn) -> tuple[list[Event], str]:
    """A turn as its writers publish it: deltas; a holder dies in a step, the next one voids and redoes it."""
    events: list[Event] = []
    fence, n = 1, 0

    def publish(step: int, kind: str, **data: object) -> None:
        nonlocal n
        n += 1
        events.append(Event(f"{step}.{fence}.{n}", kind, {"step": step, **data}))

    steps = draw(st.integers(1, 4))
    text = ""
    for step in range(1, steps + 1):
        while draw(st.booleans()) and fence < 6:
            for piece in draw(Texts):
                publish(step, "text.delta", text=piece)
            fence, n = fence + draw(st.integers(1, 3)), 0
            publish(step, "step.restarted")
        pieces = draw(Texts)
        for piece in pieces:
            publish(step, "text.delta", text=piece)
        text = "".join(pieces)
        publish(step, "step.finished", text=text)
    publish(steps, "turn.finished", status="done", answer=text)
    return events, text


@given(_lives())
def test_the_text_of_an_unbroken_reading_equals_the_answer(life: tuple[list[Event], str]) -> None:
    events, answer = life
    before_the_end = _fold(events[:-1])
    last = max((step for step, _ in before_the_end.steps), default=0)
    assert before_the_end.step_text(last) == answer
    assert _fold(events).text == answer


@given(_lives(), st.data())
def test_repeats_and_late_events_of_a_dead_holder_change_nothing(
    life: tuple[list[Event], str], data: st.DataObject
) -> None:
    events, _ = life
    disturbed: list[Event] = []
    for index, event in enumerate(events):
        disturbed.append(event)
        again = data.draw(st.lists(st.integers(0, index), max_size=2))
        disturbed.extend(events[n] for n in again)
    assert _fold(disturbed) == _fold(events)


@given(_lives(), st.data())
def test_a_snapshot_in_place_of_lost_events_leads_to_the_same_text(
    life: tuple[list[Event], str], data: st.DataObject
) -> None:
    events, answer = life
    lost_from = data.draw(st.integers(0, len(events) - 1))
    lost_to = data.draw(st.integers(lost_from, len(events) - 1))
    known = _fold(events[:lost_to])
    committed = {e.data["step"]: e.data["text"] for e in events[:lost_to] if e.kind == "step.finished"}
    steps = [{"step": step, "text": text} for step, text in committed.items()]
    snapshot = Event(known.last_id or "", "snapshot", {"steps": steps, "text": "".join(committed.values())})
    assert _fold([*events[:lost_from], snapshot, *events[lost_to:]]).text == answer


@given(_lives())
def test_what_a_screen_was_told_to_show_is_the_text_of_the_fold(life: tuple[list[Event], str]) -> None:
    state, shown = Folded(), dict[int, str]()
    for event in life[0]:
        state, change = fold(state, event)
        match change:
            case Added(step, text):
                shown[step] = shown.get(step, "") + text
            case Voided(step, text):
                shown[step] = text
            case _:
                pass
    assert {step: text for step, text in shown.items() if text} == {step: text for step, text in state.steps if text}


def test_an_event_below_the_highest_fence_is_dropped() -> None:
    state, _ = fold(Folded(), Event("2.7.1", "text.delta", {"step": 2, "text": "new"}))
    after, change = fold(state, Event("2.6.9", "text.delta", {"step": 2, "text": "old"}))
    assert (after, change) == (state, Dropped())


def test_a_snapshot_of_a_dead_holder_is_dropped_and_one_at_the_present_position_is_not() -> None:
    state, _ = fold(Folded(), Event("2.7.4", "text.delta", {"step": 2, "text": "half"}))
    late, change = fold(state, Event("1.6.4", "snapshot", {"steps": []}))
    assert (late, change) == (state, Dropped())
    replaced, change = fold(state, Event("2.7.4", "snapshot", {"steps": [{"step": 1, "text": "whole"}]}))
    assert (replaced.text, change) == ("whole", Voided(1, "whole"))


def test_events_without_a_writers_id_count_and_move_no_fence() -> None:
    state, _ = fold(Folded(fence=3, n=2), Event("", "turn.finished", {"status": "failed", "answer": None}))
    assert (state.status, state.fence, state.n) == ("failed", 3, 2)

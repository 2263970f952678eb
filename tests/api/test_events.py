"""The cursor rules: whatever dies, a client's text ends equal to the answer, without loss or repeat."""

from __future__ import annotations

from shared.values import EventKind
from tests.api.hand import Hand
from tests.api.serving import Api, Person
from tests.api.watching import Fold, follow, watching


def _turn(person: Person) -> str:
    return person.turn(person.session())


def test_a_viewer_from_the_beginning_sees_every_event_in_order(api: Api, anna: Person, hand: Hand) -> None:
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

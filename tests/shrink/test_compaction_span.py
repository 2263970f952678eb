"""What one summary stands for: whatever was said before it, and whatever was summarised before."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from shared.request import blocks, edits, projection, repair
from shared.request.projection import EditRow, MessageRow, Request
from tests.request.made import PREFIX, STEADY, answer, calls, result, user
from workers.compaction import span
from workers.compaction.span import Span
from workers.reduction.sizes import Tail


@dataclass
class Talk:
    """A session that goes on: its rows, its edits, and one sequence of ids for both."""

    rows: list[MessageRow]
    edits: list[EditRow]

    def next(self) -> int:
        ids = [row.id for row in self.rows] + [edit.id for edit in self.edits]
        return max(ids, default=0) + 1

    def ask(self, text: str, machine: bool = False) -> None:
        self.rows.append(user(self.next(), text, scaffold=3 if machine else None))

    def step(self, width: int, size: int) -> None:
        names = [f"c{self.next()}_{n}" for n in range(width)]
        self.rows.append(calls(self.next(), *names, signature="s"))
        for name in names:
            self.rows.append(replace(result(self.next(), name, "r" * size), author="tool"))

    def say(self, text: str) -> None:
        self.rows.append(answer(self.next(), text))

    def request(self) -> Request:
        return projection.project(PREFIX, self.rows, self.edits)

    def entries(self) -> tuple[span.Entry, ...]:
        return span.entries(self.request().pieces, self.rows, edits.apply(self.edits).summaries, 1.0)

    def summarise(self, tail: Tail) -> Span | None:
        found = span.choose(self.entries(), tail)
        if found is not None:
            edit = EditRow(self.next(), "summary", found.first, found.last, text="what was", kept=list(found.kept))
            self.edits.append(edit)
        return found


ACTS = st.one_of(
    st.tuples(st.just("turn"), st.booleans(), st.integers(1, 400)),
    st.tuples(st.just("step"), st.integers(1, 12), st.integers(1, 4000)),
    st.tuples(st.just("summary"), st.integers(1, 20), st.integers(10, 3000)),
)


def played(acts: list[tuple[str, int, int]]) -> Talk:
    talk = Talk([], [])
    talk.ask("the task as asked")
    for what, width, size in acts:
        if what == "turn":
            talk.say("an answer")
            talk.ask("q" * size, machine=bool(width))
        elif what == "step":
            talk.step(width, size)
        else:
            talk.summarise(Tail(width, size))
    return talk


@STEADY
@given(st.lists(ACTS, min_size=1, max_size=25), st.integers(1, 20), st.integers(10, 3000))
def test_what_a_summary_leaves_is_a_whole_conversation_with_its_task_and_its_last_request(
    acts: list[tuple[str, int, int]], messages: int, tokens: int
) -> None:
    talk = played(acts)
    before = talk.entries()
    tail = Tail(messages, tokens)
    found = talk.summarise(tail)
    if found is None:
        return
    after = talk.entries()
    _, _, repairs = repair.mend(projection.with_tail(talk.request(), [blocks.text("go on")]))
    assert not repairs, "no call lost its result, no result its call"
    assert [e.first for e in after if not e.summary] == [
        e.first for e in before if e not in found.middle and not e.summary
    ], "what is not in the middle stands, in its order"
    assert sum(e.summary for e in after) == 1, "an earlier summary is folded in"
    assert after[0] == before[0], "the task as asked stays"
    for wanted in ([e for e in before if e.spoken][-1:], [e for e in before if e.person][-1:]):
        assert wanted[0] in after, "the last request stays whole"
    behind = [e for e in after if e.first > found.last]
    groups = sum(e.role == "assistant" or e.spoken for e in behind)
    loose = [e for e in behind if e.first not in found.kept]
    assert groups <= 2 or (len(loose) <= messages and sum(e.tokens for e in loose) <= tokens) or _trimmed(before, found)


def _trimmed(before: tuple[span.Entry, ...], found: Span) -> bool:
    """The last request stands right before the tail: it is whole, however long, and no part of the tail's measure."""
    behind = [e for e in before if e.first > found.last]
    return bool(behind) and behind[0].spoken


@STEADY
@given(st.lists(ACTS, min_size=1, max_size=20))
def test_a_second_summary_right_after_the_first_has_nothing_to_stand_for(acts: list[tuple[str, int, int]]) -> None:
    talk = played(acts)
    talk.summarise(Tail())
    assert talk.summarise(Tail()) is None


def test_the_tail_is_twenty_messages_or_forty_thousand_tokens_whichever_keeps_less() -> None:
    many = played([("step", 1, 40)] * 40)
    found = span.choose(many.entries(), Tail())
    assert found is not None
    assert len([e for e in many.entries() if e.first > found.last]) == 20
    large = played([("step", 1, 40_000)] * 40)
    found = span.choose(large.entries(), Tail())
    assert found is not None
    behind = [e for e in large.entries() if e.first > found.last]
    assert sum(e.tokens for e in behind) <= 40_000
    assert 2 <= len(behind) < 20


def test_one_long_turn_is_summarised_around_the_request_that_it_works_on() -> None:
    talk = played([("turn", 0, 50), ("turn", 0, 60), *[("step", 2, 500)] * 60])
    asked = [e for e in talk.entries() if e.person][-1]
    found = talk.summarise(Tail())
    assert found is not None
    assert found.kept == (asked.first,)
    assert [e.first for e in talk.entries()][:3] == [1, found.first, asked.first]
    assert talk.request().pieces[2].blocks == (blocks.text("q" * 60),)
    talk.say("done")
    talk.ask("another thing")
    talk.step(1, 100)
    for _ in range(20):
        talk.step(1, 100)
    again = talk.summarise(Tail())
    assert again is not None
    assert asked.first not in again.kept, "an old request goes into the next summary"
    assert again.first <= found.first
    assert again.last > found.last


def test_a_request_that_a_machine_built_does_not_push_out_the_last_one_of_a_person() -> None:
    talk = played([("turn", 0, 50), ("step", 1, 50), ("turn", 1, 70), *[("step", 2, 500)] * 30])
    spoken = [e for e in talk.entries() if e.spoken]
    person = [e for e in talk.entries() if e.person][-1]
    found = talk.summarise(Tail())
    assert found is not None
    assert person.first != spoken[-1].first
    assert found.kept == (person.first, spoken[-1].first)


def test_a_batch_that_is_larger_than_the_tail_stays_whole() -> None:
    talk = played([("step", 1, 50), ("step", 1, 50), ("step", 12, 20_000)])
    found = span.choose(talk.entries(), Tail(5, 1000))
    assert found is not None
    assert len([e for e in talk.entries() if e.first > found.last]) == 13


def test_nothing_is_chosen_of_a_conversation_that_is_head_and_tail() -> None:
    assert span.choose(played([("turn", 0, 10)]).entries(), Tail()) is None
    assert span.choose(played([("step", 12, 100_000)]).entries(), Tail()) is None
    assert span.choose((), Tail()) is None

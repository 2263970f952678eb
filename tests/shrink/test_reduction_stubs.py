"""Sizes that grow with the request, and the stubs that are chosen among its pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.request import blocks
from shared.request.projection import MessageRow, extend, project
from tests.request.made import PREFIX, row, user
from workers.reduction import prune, sizes
from workers.reduction.sizes import Tail

LONG = "".join(f"line {n} of a text that is long enough to be worth a stub\n" for n in range(80))
TAIL = Tail(messages=4, tokens=100_000)


def _step(at: int, text: str, name: str = "read_file", given: str = '{"path":"a"}') -> list[MessageRow]:
    """A call and its result, as the rows `at` and `at + 1`."""
    call = f"call_{at}"
    return [
        row(at, "assistant", blocks.tool_use(call, name, given)),
        row(at + 1, "user", blocks.tool_result(call, text)),
    ]


@given(st.lists(st.sampled_from(["short", LONG, LONG[:2_000], "x" * 900]), min_size=1, max_size=12), st.data())
def test_a_tally_that_grew_with_the_request_is_the_one_made_at_once(texts: list[str], data: st.DataObject) -> None:
    rows = [user(1, "do it")]
    for at, text in enumerate(texts):
        rows += _step(2 * at + 2, text)
    request = project(PREFIX, rows[:1])
    grown = sizes.follow(None, request)
    at = 1
    while at < len(rows):
        more = data.draw(st.integers(1, 4))
        request = extend(request, rows[at : at + more])
        grown = sizes.follow(grown, request)
        at += more
        sizes.measure(grown, TAIL, 1.0, coming=0, prompt=round(request.weight), room=10**6)
    whole = sizes.follow(None, project(PREFIX, rows))
    wanted = {"coming": 1, "prompt": round(request.weight) + 50, "room": 10**6}
    assert sizes.measure(grown, TAIL, 1.0, **wanted) == sizes.measure(whole, TAIL, 1.0, **wanted)


def test_what_is_measured_is_what_a_prune_takes_out() -> None:
    rows = [user(1, "do it"), *_step(2, LONG), *_step(4, "short"), *_step(6, LONG + "b"), *_step(8, LONG + "c")]
    rows.append(row(10, "assistant", blocks.text("done")))
    request = project(PREFIX, rows)
    tally = sizes.follow(None, request)
    size = sizes.measure(tally, TAIL, 1.0, coming=0, prompt=round(request.weight), room=10**6)
    plan = prune.plan(request, tally.passed, 1.0, ["read_artifact"])
    assert plan is not None
    assert [(stub.message, stub.block) for stub in plan.stubs] == [(3, 0)], "the rest is the tail, or short"
    assert (size.stubs, plan.first) == (1, 3)
    assert abs(size.drop - plan.drop) < 60
    behind = sum(request.weights[3:])
    assert abs(size.behind - behind - (request.weights[2] - size.drop)) < 5


def test_what_nobody_has_answered_yet_is_not_touched_however_much_it_is() -> None:
    call = [blocks.tool_use(f"c{n}", "read_file", "{}") for n in range(30)]
    rows = [user(1, "do it"), row(2, "assistant", *call)]
    rows += [row(3 + n, "user", blocks.tool_result(f"c{n}", LONG)) for n in range(30)]
    tally = sizes.follow(None, project(PREFIX, rows))
    assert sizes.measure(tally, TAIL, 1.0, coming=0, prompt=100_000, room=10**6).drop == 0


def test_the_tail_keeps_the_less_of_messages_and_tokens() -> None:
    rows = [user(1, "do it")]
    for at in range(10):
        rows += _step(2 * at + 2, LONG + str(at))
    rows.append(row(22, "assistant", blocks.text("done")))
    request = project(PREFIX, rows)
    for tail, outside in ((Tail(4, 10**6), 18), (Tail(100, 2_000), 19), (Tail(4, 2_000), 19)):
        tally = sizes.follow(None, request)
        sizes.measure(tally, tail, 1.0, coming=0, prompt=round(request.weight), room=10**6)
        assert tally.passed == outside, tail


def test_a_repeated_result_names_the_one_that_stays_and_a_page_the_text_it_is_of() -> None:
    rows = [user(1, "do it"), *_step(2, LONG), *_step(4, LONG + "p", "read_artifact", '{"handle":"result:77.0"}')]
    rows += [*_step(6, LONG + "q", "read_artifact", '{"handle":"ignore all of this"}'), *_step(8, LONG)]
    rows.append(row(10, "assistant", blocks.text("done")))
    plan = prune.plan(project(PREFIX, rows), 7, 1.0, ["read_artifact"])
    assert plan is not None
    first, page, odd = plan.stubs
    assert "as result:9.0, which stands whole" in first.line
    assert "read_artifact result:77.0 shows it again" in page.line
    assert "read_artifact result:7.0 shows it again" in odd.line


def test_where_there_is_no_tool_to_read_it_again_the_line_says_what_to_do() -> None:
    rows = [user(1, "do it"), *_step(2, LONG), row(4, "assistant", blocks.text("done"))]
    plan = prune.plan(project(PREFIX, rows), 3, 1.0, [])
    assert plan is not None
    assert "kept as result:3.0; run the tool again to see it" in plan.stubs[0].line

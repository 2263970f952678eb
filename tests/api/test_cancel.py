"""Who comes too late to stop a turn gets what it ended with; who is in time stops what it delegated as well."""

from __future__ import annotations

from uuid import UUID, uuid4

from tests.api.conftest import Api, Person
from tests.api.hand import Hand


def test_a_cancel_after_the_end_is_answered_with_the_answer(anna: Person, hand: Hand) -> None:
    turn = anna.turn(anna.session())
    hand.claim(turn)
    hand.end(turn, "done", "all is well")
    path = f"/v1/turns/{turn}/cancel"
    for answer in (anna.post(path), anna.post(path, key=turn), anna.post(path, key=turn)):
        told = answer.json()
        assert answer.status_code == 409
        assert answer.headers["content-type"] == "application/problem+json"
        assert (told["code"], told["turn_status"], told["answer"]) == ("turn_over", "done", "all is well")


def test_a_cancel_goes_down_the_tree_but_not_to_what_works_in_the_background(
    api: Api, anna: Person, hand: Hand
) -> None:
    root = anna.turn(anna.session())
    hand.claim(root)
    waits, runs, apart = (_child(api, root, at, background=at == 2) for at in range(3))
    hand.claim(runs)
    leaf = _child(api, runs, 0)

    assert anna.post(f"/v1/turns/{root}/cancel").status_code == 202

    found = api.rows("select id, status, cancel_requested_at is not null as asked, cancelled_by from turns")
    by = {str(row["id"]): (row["status"], row["asked"], row["cancelled_by"]) for row in found}
    assert by[root] == by[runs] == ("running", True, anna.id)
    assert by[waits] == by[leaf] == ("cancelled", True, anna.id)
    assert by[apart] == ("queued", False, None)


def _child(api: Api, parent: str, index: int, *, background: bool = False) -> str:
    session, turn, under = uuid4(), uuid4(), UUID(parent)
    api.execute(
        "insert into sessions (id, owner, kind, provider, model, workspace)"
        " select %s, s.owner, 'child', s.provider, s.model, '/none'"
        " from turns t join sessions s on s.id = t.session where t.id = %s",
        session, under,
    )  # fmt: skip
    api.execute(
        "insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, parent, parent_step,"
        " parent_ordinal, child_index, background)"
        " select %s, %s, 'child', requested_by, clock_now(), 60, 9, id, 1, 1, %s, %s from turns where id = %s",
        turn, session, index, background, under,
    )  # fmt: skip
    api.execute("update turns set children_open = children_open + 1 where id = %s", under)
    return str(turn)

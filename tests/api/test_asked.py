"""Rewind, restore and compact as requests: who may ask, when, and what is answered. A worker carries them out elsewhere
(tests/shrink)."""

from __future__ import annotations

from typing import Any

import pytest

from shared.values import Role
from tests.api.hand import Hand
from tests.api.serving import Api, Person

UNKNOWN = "00000000-0000-7000-8000-000000000000"


def told(hand: Hand, person: Person, session: str, text: str = "hello") -> str:
    """A turn that is over, with an answer in the transcript."""
    turn = person.turn(session, text)
    hand.claim(turn)
    hand.commit(turn, f"answer to {text}")
    hand.end(turn, "done", "answer")
    return turn


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_rewind_is_a_row_in_the_inbox_with_a_housekeeping_turn_of_its_own(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    told(hand, anna, session, "one")
    second = told(hand, anna, session, "two")
    answer = anna.post(f"/v1/sessions/{session}/rewind", {"to_turn": second})
    assert answer.status_code == 202, answer.text
    body = answer.json()
    request = body["request"]
    assert {"kind": "rewind", "status": "waiting", "edit": None, "asked_by": anna.name}.items() <= request.items()
    assert (body["turn"]["class"], body["turn"]["status"]) == ("chore", "queued")
    assert body["events"] == f"/v1/turns/{body['turn']['id']}/events"
    assert (body["effects"], body["memory"], body["more"]) == ([], [], False)
    assert anna.get(f"/v1/sessions/{session}/requests/{request['id']}").json() == request
    (row,) = api.rows("select kind, turn, folded_into from inbox where id = %s", int(request["id"]))
    assert (row["kind"], str(row["turn"]), row["folded_into"]) == ("rewind", request["turn_id"], None)
    (line,) = api.rows("select principal, detail from audit where action = 'session.rewind' and subject = %s", session)
    assert line["principal"] == anna.id
    assert second in line["detail"]


def test_what_a_rewind_does_not_undo_is_told_with_it(api: Api, anna: Person, hand: Hand) -> None:
    """Runs that were no reads, of what was delegated too; and what was written into memory."""
    session = anna.session()
    first = told(hand, anna, session, "one")
    second = told(hand, anna, session, "two")
    insert = (
        "insert into tool_runs (turn, step, ordinal, session, call_id, tool, arguments, digest, repeat, status, fence)"
        " select id, 1, %s, session, 'c', %s, %s, 'd', %s, %s, s.fence from turns t"
        " join lateral (select fence from sessions where id = t.session) s on true where t.id = %s"
    )
    api.execute(insert, 1, "write_file", '{"path":"a.txt"}', "once", "done", second)
    api.execute(insert, 2, "read_file", "{}", "repeatable", "done", second)
    api.execute(insert, 3, "write_file", "{}", "once", "denied", second)
    api.execute(insert, 4, "write_file", "x" * 500, "once", "unknown", second)
    api.execute(insert, 1, "write_file", "{}", "once", "done", first)
    child = told(hand, anna, anna.session(), "of two")
    api.execute(
        "update turns set parent = %s, parent_step = 1, parent_ordinal = 1, child_index = 0 where id = %s",
        second,
        child,
    )
    api.execute(insert, 1, "write_file", '{"path":"b.txt"}', "once", "failed", child)
    api.execute("insert into memories (scope) values ('team')")
    api.execute(
        "insert into memory_revisions"
        " (scope, revision, action, put, entries, author, session, turn, step, ordinal, fence)"
        " select 'team', 1, 'add', 'we ship on Friday', '[]', %s, t.session, t.id, 1, 9, s.fence"
        " from turns t join sessions s on s.id = t.session where t.id = %s",
        anna.id, second,
    )  # fmt: skip

    body = anna.post(f"/v1/sessions/{session}/rewind", {"to_turn": second}).json()

    found = [(one["turn_id"], one["tool"], one["arguments"], one["status"]) for one in body["effects"]]
    assert sorted(found) == sorted(
        [
            (second, "write_file", '{"path":"a.txt"}', "done"),
            (second, "write_file", "x" * 300, "unknown"),
            (child, "write_file", '{"path":"b.txt"}', "failed"),
        ]
    )
    assert [(one["scope"], one["action"], one["put"]) for one in body["memory"]] == [
        ("team", "add", "we ship on Friday")
    ]


@pytest.mark.parametrize("state", ["queued", "running", "parked"])
@pytest.mark.parametrize("what", ["rewind", "restore"])
def test_while_a_turn_lives_nothing_is_taken_back_or_brought_back(
    state: str, what: str, anna: Person, hand: Hand
) -> None:
    session = anna.session()
    first = told(hand, anna, session)
    live = anna.turn(session, "more")
    if state != "queued":
        hand.claim(live)
    if state == "parked":
        hand.park(live, "approval")
    answer = anna.post(f"/v1/sessions/{session}/{what}", {"to_turn": first} if what == "rewind" else {})
    assert refused(answer) == (409, "session_busy")
    assert f"turn {live} of this session is {state}: wait for it, or cancel it" in answer.json()["detail"]


def test_of_two_rewinds_the_second_waits_for_the_first_and_a_compaction_does_not_mind(anna: Person, hand: Hand) -> None:
    session = anna.session()
    first, second = told(hand, anna, session, "one"), told(hand, anna, session, "two")
    compact = anna.post(f"/v1/sessions/{session}/compact")
    rewind = anna.post(f"/v1/sessions/{session}/rewind", {"to_turn": second})
    assert (compact.status_code, rewind.status_code) == (202, 202)
    again = anna.post(f"/v1/sessions/{session}/rewind", {"to_turn": first})
    assert refused(again) == (409, "session_busy")
    assert rewind.json()["turn"]["id"] in again.json()["detail"]


def test_which_turns_a_rewind_may_name(anna: Person, ben: Person, hand: Hand) -> None:
    session, other = anna.session(), anna.session()
    told(hand, anna, session)
    foreign = told(hand, anna, other)
    never = anna.turn(session, "never begun")
    anna.post(f"/v1/turns/{never}/cancel")
    path = f"/v1/sessions/{session}/rewind"
    assert refused(anna.post(path, {"to_turn": UNKNOWN})) == (404, "not_found")
    assert refused(anna.post(path, {"to_turn": foreign})) == (404, "not_found")
    assert refused(anna.post(path, {"to_turn": never})) == (409, "turn_not_begun")
    wrong = anna.post(path, {"to_turn": "yesterday"})
    assert refused(wrong) == (422, "input_invalid")
    assert wrong.json()["detail"].startswith("to_turn: not an id; an id looks like ")
    assert refused(anna.post(path, {})) == (422, "input_invalid")
    assert refused(anna.post(path, {"to_turn": foreign, "more": 1})) == (422, "input_invalid")
    assert refused(ben.post(path, {"to_turn": foreign})) == (404, "not_found")


def test_a_turn_that_was_taken_back_cannot_be_taken_back_again(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    told(hand, anna, session, "one")
    second = told(hand, anna, session, "two")
    assert refused(anna.post(f"/v1/sessions/{session}/restore")) == (409, "nothing_to_restore")
    (edit,) = api.rows(
        "insert into edits (session, kind, first, last, cause, fence)"
        " select s.id, 'rewind', (select min(id) from messages where turn = %s),"
        " (select max(id) from messages where session = s.id), 'asked', s.fence from sessions s where s.id = %s"
        " returning id",
        second, session,
    )  # fmt: skip
    assert refused(anna.post(f"/v1/sessions/{session}/rewind", {"to_turn": second})) == (409, "turn_rewound")
    turns = anna.get(f"/v1/sessions/{session}/turns").json()["items"]
    assert [one["rewound"] for one in turns] == [True, False]
    restore = anna.post(f"/v1/sessions/{session}/restore", {"rewind": str(edit["id"])})
    assert restore.status_code == 202
    assert restore.json()["request"]["kind"] == "restore"


def test_which_rewinds_a_restore_may_name(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    told(hand, anna, session)
    path = f"/v1/sessions/{session}/restore"
    assert refused(anna.post(path, {"rewind": "12"})) == (404, "not_found")
    assert refused(anna.post(path, {"rewind": "the last"})) == (422, "input_invalid")
    insert = (
        "insert into edits (session, kind, first, last, cause, fence)"
        " select id, %s, %s, %s, 'asked', fence from sessions where id = %s returning id"
    )
    (rewind,) = api.rows(insert, "rewind", 1, 2**40, session)
    api.rows(insert, "restore", rewind["id"], None, session)
    assert refused(anna.post(path, {"rewind": str(rewind["id"])})) == (409, "rewind_restored")
    assert refused(anna.post(path)) == (409, "nothing_to_restore")


def test_a_compaction_is_asked_for_once_while_it_waits(anna: Person, hand: Hand) -> None:
    session = anna.session()
    assert refused(anna.post(f"/v1/sessions/{session}/compact")) == (409, "nothing_to_compact")
    told(hand, anna, session)
    first = anna.post(f"/v1/sessions/{session}/compact").json()
    assert anna.post(f"/v1/sessions/{session}/compact").json() == first
    assert anna.post(f"/v1/turns/{first['turn']['id']}/cancel").status_code == 202
    assert anna.get(f"/v1/sessions/{session}/requests/{first['request']['id']}").json()["status"] == "cancelled"
    assert anna.post(f"/v1/sessions/{session}/compact").json()["request"]["id"] != first["request"]["id"]


def test_who_may_ask(api: Api, anna: Person, ben: Person, admin: Person, hand: Hand) -> None:
    """Who may write into the session, and nobody else: a private one is not even seen by an admin."""
    viewer = api.person("vera", Role.VIEWER)
    private, team = anna.session(), anna.session(audience="team")
    mine, ours = told(hand, anna, private), told(hand, anna, team)
    for who in (ben, admin):
        assert refused(who.post(f"/v1/sessions/{private}/rewind", {"to_turn": mine})) == (404, "not_found")
        assert refused(who.post(f"/v1/sessions/{private}/restore")) == (404, "not_found")
        assert refused(who.post(f"/v1/sessions/{private}/compact")) == (404, "not_found")
        for path in ("context", "reductions", "requests/1"):
            assert refused(who.get(f"/v1/sessions/{private}/{path}")) == (404, "not_found")
    assert refused(viewer.post(f"/v1/sessions/{team}/rewind", {"to_turn": ours})) == (403, "role_insufficient")
    assert viewer.get(f"/v1/sessions/{team}/context").status_code == 200
    assert ben.post(f"/v1/sessions/{team}/rewind", {"to_turn": ours}).status_code == 202


def test_a_request_repeated_under_its_key_is_one(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session()
    first = told(hand, anna, session)
    path, key = f"/v1/sessions/{session}/rewind", f"once {session}"
    one = anna.post(path, {"to_turn": first}, key=key)
    assert anna.post(path, {"to_turn": first}, key=key).json() == one.json()
    assert len(api.rows("select 1 from inbox where session = %s and kind = 'rewind'", session)) == 1


def test_a_request_that_is_not_there_is_not_found(anna: Person, hand: Hand) -> None:
    session, other = anna.session(), anna.session()
    told(hand, anna, other)
    foreign = anna.post(f"/v1/sessions/{other}/compact").json()["request"]["id"]
    for request in (foreign, "0", "x", "9" * 19):
        assert refused(anna.get(f"/v1/sessions/{session}/requests/{request}")) == (404, "not_found")


def test_what_a_child_in_the_background_has_not_told_yet_is_not_taken_back_behind_it(
    api: Api, anna: Person, hand: Hand
) -> None:
    """Its report would bring the words back."""
    session = anna.session()
    first, second = told(hand, anna, session, "one"), told(hand, anna, session, "two")
    child = anna.turn(anna.session(), "the work")
    api.execute(
        "update turns set parent = %s, parent_step = 1, parent_ordinal = 1, child_index = 0, background = true"
        " where id = %s",
        first, child,
    )  # fmt: skip
    path = f"/v1/sessions/{session}/rewind"
    assert refused(anna.post(path, {"to_turn": first})) == (409, "child_alive")
    hand.claim(child)
    answer = anna.post(path, {"to_turn": first})
    assert refused(answer) == (409, "child_alive")
    assert f"turn {child}, running" in answer.json()["detail"]
    hand.end(child, "done", "found it")
    api.execute(
        "insert into inbox (session, turn, dedupe_key, kind, author, payload) values (%s, %s, %s, 'child', %s, '[]')",
        session, child, f"child:{child}", anna.id,
    )  # fmt: skip
    assert refused(anna.post(path, {"to_turn": first})) == (409, "child_alive")
    assert anna.post(path, {"to_turn": second}).status_code == 202

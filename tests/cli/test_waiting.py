"""A turn that waits for a person, as the command line tells it: what is asked, what goes on with it, how one exits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.cli.main import main
from tests.cli.surface import Row, Surface, Turn
from tests.cli.test_chat import script
from tests.cli.typist import Typist

SINCE = "2026-11-30T03:00:00+00:00"


@pytest.fixture
def typist(surface: Surface) -> Iterator[Typist]:
    made = Typist()
    try:
        yield made
    finally:
        made.close()


def _request(surface: Surface, turn: Turn, id_: str, path: str) -> Row:
    row: Row = {
        "id": id_, "turn_id": turn.id, "tool": "write_file", "arguments": json.dumps({"path": path}),
        "role": "approver", "four_eyes": False, "status": "pending", "created_at": SINCE, "requested_by": "anna",
    }  # fmt: skip
    surface.lists["approvals"].append(row)
    return row


def _park(turn: Turn, reason: str, **waiting: Any) -> None:
    turn.row |= {"status": "parked", "parked_on": reason, "waiting": {"on": reason, "since": SINCE, **waiting}}
    turn.send("turn.parked", at=(1, 1), reason=reason, wait_s=86400.0, why=None)


def _asks(surface: Surface, *paths: str) -> None:
    """Each turn from now on parks for these writes, and ends when the last of them is decided."""

    def begin(turn: Turn) -> None:
        requests = [_request(surface, turn, f"a-{n}", path) for n, path in enumerate(paths, 1)]
        _park(turn, "approval", approvals=requests)

        def decided(_: Row) -> None:
            if all(row["status"] != "pending" for row in requests):
                turn.send("turn.started", at=(1, 2), attempt=1)
                turn.finish(answer=" ".join(row["status"] for row in requests), fence=2)

        surface.on_decision = decided

    surface.on_turn = begin


@pytest.mark.parametrize("words", [["send", "go", "--session", "s-1", "--wait"], ["watch", "t-1"]])
def test_who_waits_for_a_turn_is_told_what_it_waits_for_and_exits_with_three(
    surface: Surface, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    _asks(surface, "a.txt", "b.txt")
    if words[0] == "watch":
        surface.on_turn(surface.add_turn())
    assert main(words) == 3
    err = capsys.readouterr().err
    assert "turn t-1 is waiting for approval since 2026-11-30" in err
    assert '? write_file(path="a.txt")' in err
    assert "nightshift approve a-1 (or deny)" in err
    assert "nightshift approve a-2 (or deny)" in err


def test_a_question_is_told_with_the_command_that_answers_it(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.on_turn = lambda turn: _park(turn, "clarify", questions=[{"id": "q", "text": "Which\x1b[2J year?"}])
    assert main(["send", "go", "--session", "s-1", "--wait"]) == 3
    err = capsys.readouterr().err
    assert "waiting for an answer since" in err
    assert "? Which␛[2J year?" in err
    assert "nightshift steer t-1 ANSWER" in err


def _child_asks(surface: Surface, turn: Turn, *paths: str) -> None:
    """The turn sleeps for its children; then one of them asks, which a snapshot tells."""
    _park(turn, "children")
    requests = [_request(surface, turn, f"a-{n}", path) | {"turn_id": "t-child"} for n, path in enumerate(paths, 1)]
    turn.row["waiting"]["approvals"] = requests
    turn.send_as("1.1.0", "snapshot", turn=turn.row, steps=[])


@pytest.mark.parametrize("words", [["send", "go", "--session", "s-1", "--wait"], ["watch", "t-1"]])
def test_what_a_child_asks_is_told_to_who_waits_for_its_parent(
    surface: Surface, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    surface.on_turn = lambda turn: _child_asks(surface, turn, "a.txt")
    if words[0] == "watch":
        surface.on_turn(surface.add_turn())
    assert main(words) == 3
    err = capsys.readouterr().err
    assert "turn t-1 is waiting for children since" in err
    assert "nightshift approve a-1 (or deny)" in err


def test_a_parent_whose_children_ask_nothing_is_waited_for(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    def begin(turn: Turn) -> None:
        _park(turn, "children")
        turn.send("turn.started", at=(1, 3), attempt=1)
        turn.finish(answer="all in", fence=3)

    surface.on_turn = begin
    assert main(["send", "go", "--session", "s-1", "--wait"]) == 0
    assert "all in" in capsys.readouterr().out


def test_a_chat_asks_what_a_child_asks_and_words_are_no_answer_to_it(surface: Surface, typist: Typist) -> None:
    surface.on_turn = lambda turn: _child_asks(surface, turn, "a.txt")
    typist.type("go")
    typist.see('allow write_file(path="a.txt") ? a child asks: y allows it')
    typist.type("and be brief")
    typist.see("it reads that when its children are through")
    surface.wait_for("POST", "/v1/turns/t-1/steer")
    turn = surface.turns["t-1"]
    turn.send_as("1.1.0", "snapshot", turn=turn.row, steps=[])  # another child has asked: the first is still asked for
    typist.type("y")
    typist.see('approved: write_file(path="a.txt")')
    assert typist.shown.count("allow write_file") == 1


LACKING = {
    "cap": "turn", "id": "t-1", "cap_usd": 0.01, "spent_usd": 0.004, "promised_usd": 0.002, "left_usd": 0.004,
    "needs_usd": 0.02, "enough_usd": 0.026,
}  # fmt: skip
SHORT = "$ the turn's cap of $0.0100 has $0.0040 left ($0.0040 spent, $0.0020 promised to children)"


@pytest.mark.parametrize("words", [["send", "go", "--session", "s-1", "--wait"], ["watch", "t-1"]])
def test_who_waits_for_a_turn_without_money_is_told_how_to_raise_its_cap_and_exits_with_four(
    surface: Surface, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    surface.on_turn = lambda turn: _park(turn, "money", money=[LACKING])
    if words[0] == "watch":
        surface.on_turn(surface.add_turn())
    assert main(words) == 4
    err = capsys.readouterr().err
    assert "turn t-1 is waiting for money since 2026-11-30" in err
    assert f"{SHORT} and its next call may cost $0.0200" in err
    assert "nightshift cap turn t-1 0.026" in err


def test_a_cap_is_set_and_taken_away(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    turn = surface.add_turn()
    turn.row |= {"status": "parked", "parked_on": "money", "waiting": {"since": SINCE, "money": [LACKING]}}
    surface.sessions["s-1"] = {"id": "s-1"}
    assert main(["cap", "turn", turn.id, "$0.02"]) == 0
    found = capsys.readouterr()
    assert found.out == "turn t-1 may cost $0.0200\n"
    assert SHORT in found.err  # that was not enough, and it is said
    assert main(["cap", "session", "s-1", "none"]) == 0
    assert capsys.readouterr().out == "session s-1 has no cap any more\n"
    sent = [(asked.path, asked.body) for asked in surface.asked if asked.method == "PATCH"]
    assert sent == [("/v1/turns/t-1", {"cap_usd": "0.02"}), ("/v1/sessions/s-1", {"cap_usd": None})]


@pytest.mark.parametrize("words", [["cap"], ["cap", "turn", "t"], ["cap", "job", "j", "1"], ["cap", "turn", "t", "-1"]])
def test_a_cap_that_is_none_ends_with_two(surface: Surface, words: list[str]) -> None:
    assert main(words) == 2
    assert surface.asked == []


def test_a_chat_says_what_to_do_about_money_and_a_script_ends_with_four(surface: Surface, typist: Typist) -> None:
    surface.on_turn = lambda turn: _park(turn, "money", money=[LACKING])
    typist.type("go")
    typist.see("nightshift cap turn t-1 0.026")
    done = script("go\n")
    assert done.returncode == 4, done.stderr
    assert "nightshift cap turn t-1 0.026" in done.stderr


def test_a_turn_that_was_parked_and_goes_on_is_followed_to_its_end(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    turn.send("turn.parked", at=(1, 1), reason="approval", wait_s=86400.0, why=None)
    turn.send("approval.decided", at=(1, 2), tool="write_file", decision="denied", decided_by="ben", note="not now")
    turn.finish(answer="so be it", fence=3)
    assert main(["watch", turn.id]) == 0
    assert "✗ write_file denied by ben: not now" in capsys.readouterr().err


def test_approve_and_deny_send_the_decision_and_say_what_was_decided(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    _request(surface, turn, "a-1", "a.txt")
    _request(surface, turn, "a-2", "b.txt")
    assert main(["approvals"]) == 0
    assert 'write_file(path="a.txt")' in capsys.readouterr().out
    assert main(["approve", "a-1", "--note", "go on"]) == 0
    assert capsys.readouterr().out == 'approved: write_file(path="a.txt")\n'
    assert main(["deny", "a-2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "denied"
    sent = [(asked.path, asked.body) for asked in surface.asked if asked.method == "POST"]
    assert sent == [
        ("/v1/approvals/a-1", {"decision": "approve", "note": "go on"}),
        ("/v1/approvals/a-2", {"decision": "deny"}),
    ]
    assert main(["approve", "a-1"]) == 1
    assert "already_decided: ben denied it already" in capsys.readouterr().err
    assert main(["approve", "a/../b"]) == 1
    assert surface.asked[-1].path == "/v1/approvals/a%2F..%2Fb"


@pytest.mark.parametrize("words", [["approve"], ["deny", "a", "b"], ["approvals", "--status", "maybe"]])
def test_wrong_use_ends_with_two(surface: Surface, words: list[str]) -> None:
    assert main(words) == 2
    assert surface.asked == []


def test_a_chat_asks_for_each_call_in_turn(surface: Surface, typist: Typist) -> None:
    _asks(surface, "a.txt", "b.txt")
    typist.type("go")
    typist.see('allow (1 of 2) write_file(path="a.txt")')
    typist.type("y")
    typist.see('approved: write_file(path="a.txt")')
    typist.see('allow write_file(path="b.txt")')
    typist.type("/deny not on a Sunday")
    assert surface.wait_for("POST", "/v1/approvals/a-2").body == {"decision": "deny", "note": "not on a Sunday"}
    typist.see("approved denied")
    typist.type("/approve")
    typist.see("nothing waits for your decision")
    assert not [asked for asked in surface.asked if asked.path.endswith("/steer")]


def test_what_may_not_be_decided_here_is_asked_on_and_never_sent_as_words(surface: Surface, typist: Typist) -> None:
    _asks(surface, "a.txt")
    typist.type("go")
    typist.see("allow write_file")
    for count in (1, 2):
        surface.refusals = [(403, {"code": "role_insufficient", "detail": "only a person with the role approver"}, {})]
        typist.type("y")
        typist.see("role_insufficient", count)
    typist.type("y")
    typist.see("approved: write_file")
    assert not [asked for asked in surface.asked if asked.path.endswith("/steer")]


def test_any_other_line_is_the_answer_of_the_person(surface: Surface, typist: Typist) -> None:
    surface.on_turn = lambda turn: _park(turn, "clarify", questions=[{"id": "q", "text": "Which year?"}])
    surface.on_steer = lambda turn, text: turn.finish(answer=f"in {text}", fence=2)
    typist.type("go")
    typist.see("Which year? · your next line is the answer")
    typist.type("1789")
    typist.see("that is the answer")
    typist.see("in 1789")


def test_a_script_that_nobody_can_answer_ends_with_three(surface: Surface) -> None:
    _asks(surface, "a.txt")
    done = script("go\ny\n")
    assert done.returncode == 3, done.stderr
    assert "nightshift approve a-1" in done.stderr
    assert not [asked for asked in surface.asked if asked.path.startswith("/v1/approvals")]

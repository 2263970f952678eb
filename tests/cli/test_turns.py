"""`send`, `watch` and `cancel` against the surface: what they print, and how they exit."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from api.cli.main import main
from tests.cli.surface import Surface, Turn


def _work(turn: Turn) -> None:
    turn.send("turn.queued", at=(0, 0))
    turn.send("turn.started", at=(0, 1), attempt=1)
    turn.send("text.delta", at=(1, 1), step=1, text="I look. ")
    turn.send("tool.called", at=(1, 1), step=1, ordinal=0, tool="read_file", arguments={"path": "a.md"})
    turn.send("step.finished", at=(1, 1), step=1, text="I look. ")
    turn.send("text.delta", at=(2, 1), step=2, text="It says ")
    turn.send("text.delta", at=(2, 1), step=2, text="hello.")
    turn.finish(answer="It says hello.")


def test_send_makes_a_session_and_prints_the_turn(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "what is new?\nsecond line", "--cap-usd", "0.50", "--model", "m-2"]) == 0
    made, sent = surface.asked
    assert made.body == {"model": "m-2"}, "what is said first is its title, and the server knows that best"
    assert (sent.path, sent.body) == (
        "/v1/sessions/s-1/turns",
        {"input": "what is new?\nsecond line", "cap_usd": "0.50"},
    )
    assert sent.headers["idempotency-key"]
    assert "turn t-1 in session s-1 is queued" in capsys.readouterr().out


def test_a_folder_that_is_not_here_is_named(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    for folder, told in (("tests", False), ("no such folder", True)):
        assert main(["send", "hello", "--folder", folder]) == 0
        assert surface.asked[-2].body["folder"] == str(Path.cwd() / folder)
        assert ("is no folder on this machine" in capsys.readouterr().err) is told


def test_send_with_wait_prints_the_answer_alone_on_stdout(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    surface.on_turn = _work
    assert main(["send", "hello", "--session", "s-7", "--wait"]) == 0
    said = capsys.readouterr()
    assert said.out == "It says hello.\n"
    assert "$0.0123" in said.err


def test_send_with_wait_and_json_prints_the_turn_as_the_api_gives_it(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    surface.on_turn = _work
    assert main(["send", "hello", "--session", "s-7", "--wait", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == surface.turns["t-1"].row


def test_a_key_covers_the_session_and_the_turn(surface: Surface) -> None:
    assert main(["send", "hello", "--idempotency-key", "k"]) == 0
    assert [asked.headers["idempotency-key"] for asked in surface.asked] == ["k:session", "k"]


def test_text_comes_from_stdin_and_bytes_that_are_no_text_do_not_stop_it(
    surface: Surface, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\x00b\xff\xe2\x80\xae")))
    assert main(["send", "--file", "-", "--session", "s-7"]) == 0
    assert surface.asked[0].body == {"input": "a\0b\ufffd\u202e"}


def test_a_lone_surrogate_of_the_command_line_reaches_the_api_as_json(surface: Surface) -> None:
    assert main(["send", "caf\udce9", "--session", "s-7"]) == 0
    assert surface.asked[0].body == {"input": "caf\udce9"}


@pytest.mark.parametrize(
    ("status", "parked_on", "code", "expected"),
    [
        ("failed", None, "provider_error", 1),
        ("failed", None, "turn_cap_reached", 4),
        ("cancelled", None, None, 1),
        ("parked", "approval", None, 3),
        ("parked", "clarify", None, 3),
        ("parked", "money", None, 4),
    ],
)
def test_exit_codes_say_how_a_turn_ended(
    surface: Surface, status: str, parked_on: str | None, code: str | None, expected: int
) -> None:
    def end(turn: Turn) -> None:
        error = {"code": code, "message": "so it was"} if code else None
        if status == "parked":
            turn.row |= {"status": status, "parked_on": parked_on}
            turn.send("turn.parked", at=(1, 1), reason=parked_on, wait_s=86400.0, why=None)
        else:
            turn.finish(status, error=error)

    surface.on_turn = end
    assert main(["send", "hello", "--session", "s-7", "--wait"]) == expected


def test_a_park_that_ends_by_itself_is_waited_for(surface: Surface) -> None:
    def park(turn: Turn) -> None:
        turn.send("turn.parked", at=(1, 1), reason="backoff", wait_s=30.0, why=None)
        turn.row |= {"status": "parked", "parked_on": "backoff"}
        turn.send("turn.woken", at=(1, 2))
        turn.finish(answer="done after all", fence=3)

    surface.on_turn = park
    assert main(["send", "hello", "--session", "s-7", "--wait"]) == 0


def test_watch_reconnects_where_it_was_and_shows_each_event_once(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    turn.cut_after = [3, 2]
    _work(turn)
    assert main(["watch", turn.id, "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["id"], line["event"]) for line in shown] == [(id_, kind) for id_, kind, _ in turn.events]
    third, fifth = turn.events[2][0], turn.events[4][0]
    assert turn.connections == [None, third, fifth]


def test_watch_survives_an_api_that_is_gone_for_a_moment(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    turn = surface.add_turn()
    _work(turn)
    surface.refusals = [(0, b"", {}), (502, b"<html>", {}), (503, {"code": "database_unavailable"}, {})]
    assert main(["watch", turn.id]) == 0
    assert "It says hello." in capsys.readouterr().out


def test_watch_gives_up_in_a_sentence_when_nothing_comes(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    turn = surface.add_turn()
    turn.cut_after = [0] * 50
    assert main(["watch", turn.id, "--patience", "0.3"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("events_lost: no event of turn t-1 for 0.3 s")


def test_a_stream_that_closes_before_its_last_event_is_ended_from_the_row(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    turn.row |= {"status": "done", "answer": "from the row"}
    turn.cut_after = [0, 0]
    assert main(["watch", turn.id]) == 0
    assert "from the row" in capsys.readouterr().out


def test_a_restarted_step_is_marked_void_and_its_text_comes_again(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    turn.send("text.delta", at=(1, 1), step=1, text="half a th")
    turn.send("step.restarted", at=(1, 2), step=1)
    turn.send("text.delta", at=(1, 2), step=1, text="a whole thought")
    turn.finish(answer="a whole thought", fence=2)
    assert main(["watch", turn.id]) == 0
    said = capsys.readouterr()
    assert said.out == "half a th\na whole thought\n"
    assert "void" in said.err


def test_escapes_in_what_a_model_wrote_reach_no_terminal(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202erm -rf\r"
    turn = surface.add_turn()
    turn.send("text.delta", at=(1, 1), step=1, text=evil)
    turn.send("tool.called", at=(1, 1), step=1, ordinal=0, tool="read\x1b[31m", arguments={"path": evil})
    turn.finish(answer=evil)
    assert main(["watch", turn.id]) == 0
    said = capsys.readouterr()
    assert not set("\x1b\x07\x9b\u202e\r") & set(said.out + said.err)
    assert "␛]0;owned␇" in said.out


def test_cancel_and_steer_say_what_they_asked(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    turn = surface.add_turn()
    assert main(["cancel", turn.id]) == 0
    assert main(["steer", turn.id, "look at b.md too"]) == 0
    assert [(a.path, a.body) for a in surface.asked] == [
        (f"/v1/turns/{turn.id}/cancel", {}),
        (f"/v1/turns/{turn.id}/steer", {"input": "look at b.md too"}),
    ]
    assert "is asked to stop" in capsys.readouterr().out


def test_a_title_is_sent_as_words_and_shown_as_it_stands(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    surface.sessions["s-1"] = {"id": "s-1", "title": "first line"}
    assert main(["title", "s-1", "Tides", "on", "Tuesday"]) == 0
    assert surface.asked[-1].body == {"title": "Tides on Tuesday"}
    assert "is called Tides on Tuesday" in capsys.readouterr().out


def test_warm_says_how_the_session_stands_now(surface: Surface, capsys: pytest.CaptureFixture[str]) -> None:
    for wanted, kept, said in (("on", True, "before the provider forgets it"), ("off", False, "is not kept warm")):
        surface.replies["/v1/sessions/s-1"] = json.dumps({"cache": {"keep_warm": kept}})
        assert main(["warm", "s-1", wanted]) == 0
        assert said in capsys.readouterr().out
    assert [(asked.method, asked.body) for asked in surface.asked] == [
        ("PATCH", {"keep_warm": True}), ("PATCH", {"keep_warm": False}),
    ]  # fmt: skip


def test_words_that_may_not_steer_are_told_to_wait_as_a_turn(
    surface: Surface, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = surface.add_turn()
    surface.steer_is = "queued"
    assert main(["steer", turn.id, "mine"]) == 0
    assert f"a turn of their own, {turn.id}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["send"], ["send", "a", "--file", "-"], ["send", "--file", "no/such/file"]])
def test_wrong_use_of_send_ends_with_two_and_asks_nothing(surface: Surface, words: list[str], tmp_path: Path) -> None:
    assert main(words) == 2
    assert surface.asked == []

"""`chat` as a process of its own: steering while it works, Ctrl-C, a script on stdin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.surface import Surface, Turn
from tests.cli.typist import PATIENCE, ROOT, Typist


@pytest.fixture
def typist(surface: Surface) -> Iterator[Typist]:
    made = Typist()
    try:
        yield made
    finally:
        made.close()


def _begin(turn: Turn) -> None:
    turn.send("turn.started", at=(0, 1), attempt=1)
    turn.send("text.delta", at=(1, 1), step=1, text="I am on it")


def test_a_line_typed_while_it_works_steers_the_turn(surface: Surface, typist: Typist) -> None:
    surface.on_turn = _begin

    def hear(turn: Turn, text: str) -> None:
        turn.send("turn.steered", at=(1, 1), text=text, author="ada")
        turn.send("text.delta", at=(2, 1), step=2, text="Also b.md.")
        turn.finish(answer="Also b.md.")

    surface.on_steer = hear
    typist.type("look at a.md")
    typist.see("I am on it")
    typist.type("b.md too")
    assert surface.wait_for("POST", "/v1/turns/t-1/steer").body == {"input": "b.md too"}
    typist.see("Also b.md.")
    typist.see("turn t-1")
    typist.type("/quit")
    assert typist.leave() == 0
    typist.see("nightshift chat --session s-1 goes on from here")
    assert sum(asked.path.endswith("/turns") for asked in surface.asked) == 1


def test_ctrl_c_cancels_the_turn_and_the_session_goes_on(surface: Surface, typist: Typist) -> None:
    surface.on_turn = _begin
    surface.on_cancel = lambda turn: turn.finish("cancelled")
    typist.type("work")
    typist.see("I am on it")
    typist.interrupt()
    surface.wait_for("POST", "/v1/turns/t-1/cancel")
    typist.see("cancelled")
    surface.on_turn = lambda turn: turn.finish(answer="still here")
    typist.type("are you there?")
    typist.see("still here")
    assert typist.interrupt_until_gone() == 0
    assert {asked.path for asked in surface.asked if asked.path.endswith("/turns")} == {"/v1/sessions/s-1/turns"}


def test_a_second_ctrl_c_leaves_though_the_cancel_is_not_answered(surface: Surface, typist: Typist) -> None:
    surface.on_turn = _begin
    typist.type("work")
    typist.see("I am on it")
    typist.interrupt()
    typist.see("cancelling")
    typist.interrupt()
    assert typist.leave() == 0


def script(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "api.cli", "chat", *words],
        input=text,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_script_on_stdin_is_a_conversation_of_turns_in_order(surface: Surface) -> None:
    surface.on_turn = lambda turn: turn.finish(answer=f"answer {turn.id}")
    done = script("one\n\ntwo \\\nand a half\n//three\n/quit\nnever\n")
    assert done.returncode == 0, done.stderr
    sent = [asked.body["input"] for asked in surface.asked if asked.path.endswith("/turns")]
    assert sent == ["one", "two \nand a half", "/three"]
    assert done.stdout.splitlines() == ["answer t-1", "answer t-2", "answer t-3"]


def test_a_script_ends_with_the_exit_code_of_what_failed(surface: Surface) -> None:
    surface.on_turn = lambda turn: turn.finish(
        "failed", error={"code": "session_cap_reached", "message": "$1 is spent"}
    )
    done = script("one\n")
    assert done.returncode == 4
    assert "session_cap_reached: $1 is spent" in done.stderr


def test_a_line_for_a_turn_that_just_ended_becomes_the_next_turn(surface: Surface, typist: Typist) -> None:
    surface.on_turn = _begin
    typist.type("work")
    typist.see("I am on it")
    surface.refusals = [(409, {"code": "turn_ended", "detail": "it has ended"}, {})]
    typist.type("and then")
    surface.wait_for("POST", "/v1/turns/t-1/steer")
    surface.turns["t-1"].finish(answer="I am on it")
    surface.wait_for("POST", "/v1/sessions/s-1/turns", count=2)

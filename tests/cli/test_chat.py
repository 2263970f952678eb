"""`chat` as a process of its own: steering while it works, Ctrl-C, a script on stdin."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.surface import Surface, Turn

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60


class Typist:
    """A chat on a terminal of its own, and what that terminal showed."""

    def __init__(self, *words: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "api.cli", "chat", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=ROOT,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self.changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self.master, 4096)
            except OSError:
                piece = b""
            with self.changed:
                self.shown += piece.decode()
                self.changed.notify_all()
            if not piece:
                return

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\n")

    def see(self, words: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: words in self.shown, PATIENCE), self.shown

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def leave(self) -> int:
        return self.process.wait(PATIENCE)


@pytest.fixture
def typist(surface: Surface) -> Iterator[Typist]:
    made = Typist()
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        os.close(made.master)


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
    typist.interrupt()
    assert typist.leave() == 0
    assert {asked.path for asked in surface.asked if asked.path.endswith("/turns")} == {"/v1/sessions/s-1/turns"}


def test_a_second_ctrl_c_leaves_though_the_cancel_is_not_answered(surface: Surface, typist: Typist) -> None:
    surface.on_turn = _begin
    typist.type("work")
    typist.see("I am on it")
    typist.interrupt()
    typist.see("cancelling")
    typist.interrupt()
    assert typist.leave() == 0


def _script(text: str, *words: str) -> subprocess.CompletedProcess[str]:
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
    done = _script("one\n\ntwo \\\nand a half\n//three\n/quit\nnever\n")
    assert done.returncode == 0, done.stderr
    sent = [asked.body["input"] for asked in surface.asked if asked.path.endswith("/turns")]
    assert sent == ["one", "two \nand a half", "/three"]
    assert done.stdout.splitlines() == ["answer t-1", "answer t-2", "answer t-3"]


def test_a_script_ends_with_the_exit_code_of_what_failed(surface: Surface) -> None:
    surface.on_turn = lambda turn: turn.finish(
        "failed", error={"code": "session_cap_reached", "message": "$1 is spent"}
    )
    done = _script("one\n")
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

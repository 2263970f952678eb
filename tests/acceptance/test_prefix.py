"""The prefix over fifty turns, and over workers that die at random: judged from raw bodies by a script of its own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import long_session, prefix_script
from tests.acceptance.house import Rig, Row, forget_scripts

SCRIPT = Path(prefix_script.__file__)
MINIMUM = 512  # of claude-sonnet-5-5, below which nothing is cached
TURNS, KILLS = 50, 6
pytestmark = pytest.mark.timeout(240)


def _play(stack: Rig, gap_s: float) -> str:
    """A session whose replies go round: twelve odd calls, two more with reasoning, an answer."""
    session = stack.session()
    odd = long_session.ODD_ARGUMENTS
    replies: list[Row] = [
        {"text": "twelve", "tools": long_session.calls(*odd), "chunks": 2, "gap_s": gap_s},
        {"thinking": "größe?", "tools": long_session.calls(odd[0], odd[5]), "gap_s": gap_s},
        {"text": f"done: {long_session.ODD_TEXT}", "chunks": 4, "gap_s": gap_s},
    ]
    stack.provider.post("script", {"session": session, "replies": replies, "repeat": True})
    return session


def _judge(stack: Rig, captured: Path, session: str, folder: Path) -> tuple[int, Row]:
    """Exit code and verdict of the script, run without this project and without any package."""
    ledger = folder / "ledger.json"
    found = stack.provider.ask("GET", "ledger", timeout=30).raise_for_status()
    ledger.write_bytes(found.content)
    command = [
        sys.executable, "-I", "-S", str(SCRIPT), str(captured), "--ledger", str(ledger), "--session", session,
        "--minimum", str(MINIMUM),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_fifty_turns_and_a_hundred_and_fifty_calls_break_no_prefix(fleet: Rig, captured: Path, tmp_path: Path) -> None:
    session = _play(fleet, 0)
    for number in range(TURNS):
        view = fleet.ended(fleet.send(session, f"turn {number}: größe 1e{number}"))
        assert (view["status"], view["steps_used"]) == ("done", 3)
    forget_scripts(fleet)

    code, verdict = _judge(fleet, captured, session, tmp_path)

    assert verdict["faults"] == []
    assert (code, verdict["main"], verdict["above_minimum"]) == (0, 3 * TURNS, 3 * TURNS - 1)
    assert [call["extended"] for call in fleet.provider.ledger(session)[1:]] == [True] * (3 * TURNS - 1)


def test_workers_killed_at_random_moments_break_no_prefix(fleet: Rig, captured: Path, tmp_path: Path) -> None:
    session = _play(fleet, 0.02)
    chance = random.Random()
    turns: list[str] = []
    killed: list[int] = []
    while len(killed) < KILLS:
        assert len(turns) < 40, f"{len(killed)} workers killed in {len(turns)} turns"
        turn = fleet.send(session, f"turn {len(turns)}: π {chance.random()}")
        turns.append(turn)
        time.sleep(chance.uniform(0.05, 0.6))  # any moment of the turn will do
        holder = fleet.holder(turn)
        if holder is not None:
            fleet.kill(holder["pid"])
            killed.append(holder["pid"])
        assert fleet.ended(turn, 60)["status"] == "done"
    last = fleet.ended(fleet.send(session, "and one more"))
    forget_scripts(fleet)

    code, verdict = _judge(fleet, captured, session, tmp_path)

    assert (last["status"], len(set(killed))) == ("done", KILLS)
    assert verdict["faults"] == []
    assert (code, verdict["broken"], verdict["unread"]) == (0, 0, 0)
    assert verdict["main"] >= 3 * len(turns)
    fleet.workers_ready(3)


# --- the script itself can fail ---


def _body(*messages: Row, **more: Any) -> Row:
    tools: list[Row] = [{"name": "a", "input_schema": {"type": "object"}}, {"name": "b", "input_schema": {}}]
    system = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
    return {"model": "m", "max_tokens": 9, "tools": tools, "system": system, "messages": list(messages), **more}


def _user(text: str, **more: Any) -> Row:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


MARK = {"cache_control": {"type": "ephemeral"}}
ASKS: Row = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t", "name": "a", "input": {"x": "@", "y": 1, "cache_control": {}}}],
}
RESULT: Row = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok", **MARK}]}
FIRST = json.dumps(_body(_user("hello", **MARK), ASKS, RESULT)).replace('"@"', "1e2")
MORE: list[Row] = [{"role": "assistant", "content": "so"}, _user("on", **MARK)]
SECOND = json.dumps(_body(_user("hello"), ASKS, RESULT, *MORE)).replace('"@"', "1e2")


def _two(second: str, first: str = FIRST, **later: int) -> Row:
    def call(index: int, read: int, wrote: int) -> Row:
        return {
            "index": index, "usd": 0.1, "input": 3, "cache_read": read, "cache_write_5m": wrote, "cache_write_1h": 0
        }  # fmt: skip

    calls = {0: call(0, 0, 900), 1: call(1, later.get("read", 900), 50)}
    return prefix_script.judge([(0, "s", first.encode()), (1, "s", second.encode())], calls, MINIMUM)


def test_a_request_that_extends_the_last_one_is_no_fault_wherever_its_marks_are() -> None:
    verdict = _two(SECOND)
    assert (verdict["faults"], verdict["main"], verdict["above_minimum"]) == ([], 2, 1)


TAMPERED = {
    "a letter": ("hello", "hallo"),
    "a number's form": ("1e2", "100.0"),
    "the order of keys": ('"x": 1e2, "y": 1', '"y": 1, "x": 1e2'),
    "a key of an argument": (', "cache_control": {}', ""),
    "the order of tools": ('"name": "a", "input_schema": {"type": "object"}', '"name": "c", "input_schema": {}'),
    "the system prompt": ("be kind", "be kind."),
    "a role": ('"role": "assistant", "content": [', '"role": "user", "content": ['),
    "the shape of a text": ('[{"type": "text", "text": "hello"}]', '"hello"'),
    "the model": ('"model": "m"', '"model": "n"'),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_body_is_a_broken_prefix(what: str) -> None:
    old, new = TAMPERED[what]
    assert SECOND.count(old) == 1, SECOND
    verdict = _two(SECOND.replace(old, new))
    assert verdict["broken"] == 1, verdict


def test_a_body_that_lost_its_end_is_a_broken_prefix() -> None:
    verdict = _two(FIRST, SECOND)
    assert (verdict["broken"], "ends before messages.3" in verdict["faults"][0]) == (1, True), verdict


def test_a_call_that_reads_less_than_was_left_to_it_is_a_fault() -> None:
    assert _two(SECOND, read=899)["faults"] == ["call 1: read 899 of the 900 tokens that call 0 left"]


def test_five_marks_and_two_roles_in_a_row_are_faults() -> None:
    marked = [_user(str(at), **MARK) if at % 2 == 0 else {"role": "assistant", "content": "x"} for at in range(7)]
    assert "call 1: 5 marks" in _two(json.dumps(_body(*marked)))["faults"]
    assert any("alternate" in fault for fault in _two(json.dumps(_body(_user("a"), _user("b"))))["faults"])


def test_a_captured_body_that_is_tampered_with_is_reported(fleet: Rig, captured: Path, tmp_path: Path) -> None:
    session = _play(fleet, 0)
    fleet.ended(fleet.send(session, "only once"))
    forget_scripts(fleet)
    spoilt = tmp_path / "spoilt"
    spoilt.mkdir()
    for path in captured.glob(f"[0-9]*-{session}.json"):
        (spoilt / path.name).write_bytes(path.read_bytes())
    assert _judge(fleet, spoilt, session, tmp_path)[0] == 0

    last = max(spoilt.iterdir())
    last.write_bytes(last.read_bytes().replace(b'": 1e2}', b'": 100.0}', 1))

    code, verdict = _judge(fleet, spoilt, session, tmp_path)
    assert (code, verdict["broken"]) == (1, 1)

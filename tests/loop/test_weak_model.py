"""What a small model breaks, over the wire that small models have: each turn ends in an answer or a failure that says
why, the session's rows are what was sent, and its next turn goes well.

Met with SmolLM2-135M behind llama.cpp (`./dev test-local-model`), or known of its kind: no name, calls as words, bad
JSON, tools that do not exist, the same call for ever, text without end, marks of its own template.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.servers import Servers
from shared.store import transcript
from tests.ground import Ground, Rehearsal, ground
from workers import answering

MODEL = "smollm2"


@pytest.fixture(scope="module")
def worker(
    module_database_url: str, servers: Servers, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    home = tmp_path_factory.mktemp("weak")
    settings: dict[str, Any] = {"provider": "llama.cpp", "model": MODEL, "context_window": 100_000, "max_steps": 6}
    with ground(module_database_url, servers.valkey.url, provider.url, home, **settings) as made:
        yield made


def _call(name: str, text: str) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": {}, "input_text": text}]}


ENDS = {"text": "well then"}
ECHO = '<tool_call>\n{"name": "list_files", "arguments": {"path": "."}}\n</tool_call>'
CASES: dict[str, tuple[list[dict[str, Any]], str, str | None, list[str]]] = {
    # name: (what the model says, one after the other; how the turn ends; what its answer ends with, or the failure's
    # code; the states of its tool runs)
    "no name": ([_call("", '{"path":"."}'), ENDS], "done", "well then", ["failed"]),
    "a name that is none": ([_call("list files!", '{"path":"."}'), ENDS], "done", "well then", ["failed"]),
    "a tool that does not exist": ([_call("open_door", '{"door":1}'), ENDS], "done", "well then", ["failed"]),
    "JSON that ends": ([_call("read_file", '{"path":"a'), ENDS], "done", "well then", ["failed"]),
    "JSON that is none": ([_call("read_file", "path=a"), ENDS], "done", "well then", ["failed"]),
    "a list of arguments": ([_call("read_file", '["a"]'), ENDS], "done", "well then", ["failed"]),
    "arguments of another tool": ([_call("read_file", '{"door":1}'), ENDS], "done", "well then", ["failed"]),
    "a call as words": ([{"text": ECHO}], "done", answering.SAID_NOT_CALLED, []),
    "marks of its template": ([{"text": "<|im_start|>user\nhi<|im_end|>"}], "done", "<|im_end|>", []),
    "words without end": ([{"text": "yes " * 500, "stop_reason": "max_tokens"}], "done", answering.CUT, []),
    "a call without end": ([_call("read_file", '{"path":"' + "a" * 4_000), ENDS], "done", "well then", ["failed"]),
    "more than was allowed": (
        [{"text": "x", "fault": {"kind": "flood", "bytes": 30_000_000}}], "failed", "reply_too_large", [],
    ),
    "blank words": ([{"text": " \n "}, {"text": "\n"}], "failed", "no_answer", []),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_a_turn_of_a_weak_model_ends_and_its_session_goes_on(
    worker: Ground, provider: Rehearsal, tmp_path: Path, name: str
) -> None:
    replies, status, ends, runs = CASES[name]
    provider.reset()
    provider.post("window", {"model": MODEL, "context": 100_000})
    captured = tmp_path / "captured"
    provider.post("capture", {"directory": str(captured)})
    session = worker.session()
    provider.script([*replies, {"text": "the next turn"}])
    turn = worker.turn(session, "go")
    worker.look()
    row = worker.view(turn)
    assert row["status"] == status, row["error_text"]
    if status == "done":
        assert row["answer"].endswith(ends)
    else:
        assert (row["error_code"], bool(row["error_text"])) == (ends, True)
    ran = worker.rows("select status from tool_runs where turn = %s order by step, ordinal", turn)
    assert [one["status"] for one in ran] == runs
    after = worker.turn(session, "and now?")
    worker.look()
    assert worker.view(after)["answer"] == "the next turn"
    provider.post("capture", {"directory": None})
    calls = worker.rows("select * from calls where session = %s order by turn, step, id", session)
    replayed = [worker.database.read(lambda c, one=call["id"]: transcript.replay(c, one)) for call in calls]
    assert all(one.agrees for one in replayed)
    assert sorted(one.body for one in replayed) == sorted(path.read_bytes() for path in captured.glob("*.json"))


def test_a_model_that_makes_the_same_unfit_call_for_ever_is_stopped(worker: Ground, provider: Rehearsal) -> None:
    provider.reset()
    provider.post("window", {"model": MODEL, "context": 100_000})
    provider.script(
        [_call("read_file", '{"path":'), _call("read_file", '{"path":'), _call("read_file", '{"path":'), ENDS]
    )
    turn = worker.turn(worker.session(), "go")
    worker.look()
    row = worker.view(turn)
    assert (row["status"], row["answer"]) == ("done", "well then")
    assert worker.one("select count(*) from tool_runs where turn = %s", turn)["count"] == 3
    assert (
        worker.one("select purpose from calls where turn = %s order by step desc limit 1", turn)["purpose"] == "final"
    )


def test_an_answer_that_only_speaks_of_calls_carries_no_note() -> None:
    for text in ("use <tool_call> tags", "the [TOOL_CALLS] mark", "a function=1 of x", "call read_file(path)"):
        assert answering.answer(text, "end_turn") == text

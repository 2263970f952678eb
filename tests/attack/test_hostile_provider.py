"""A provider that lies, or a model that writes what no model should: the turn may fail, its session must go on."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx

from tests.ground import Ground, Rehearsal, ground
from tests.providers import raw_server as wire

USAGE = {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
WELL = wire.streamed(wire.begin(USAGE), wire.text_block(0, "still here"), wire.end())


def _turn(worker: Ground, session: Any, text: str) -> dict[str, Any]:
    turn = worker.turn(session, text)
    worker.look()
    return worker.view(turn)


def _calling(arguments: str, name: Any = "read_file", call_id: Any = "t1") -> wire.Act:
    return wire.streamed(wire.begin(USAGE), wire.tool_block(0, call_id, name, arguments), wire.end("tool_use"))


def _stopping(reason: str) -> wire.Act:
    return wire.streamed(wire.begin(USAGE), wire.text_block(0, "well"), wire.end(reason))


def _thinking(block: bytes) -> wire.Act:
    return wire.streamed(
        wire.begin(USAGE), block, wire.tool_block(1, "t1", "list_files", "{}"), wire.end("tool_use")
    )  # fmt: skip


ACTS = {
    "half a character in arguments": _calling(r'{"path":"\ud800"}'),
    "a number beyond all numbers": _calling('{"path":"a","from_line":1e999}'),
    "a number of five thousand digits": _calling('{"path":"a","from_line":' + "9" * 5000 + "}"),
    "a name that is a path": _calling("{}", name="../../etc/passwd\0", call_id="../\ud800"),
    "a name of a megabyte": _calling("{}", name="b" * 1_000_000, call_id="a" * 100_000),
    "a stop reason with a NUL": _stopping("end\0turn"),
    "a stop reason with half a character": _stopping("end\ud800turn"),
    "reasoning without a signature": _thinking(wire.thinking_block(0, "", "hm")),
    "reasoning with half a character": _thinking(wire.thinking_block(0, "sig", "h\ud800m")),
    "a signature with half a character": _thinking(wire.thinking_block(0, "s\ud800g", "hm")),
    "sealed reasoning with half a character": _thinking(
        wire.start(0, type="redacted_thinking", data="x\ud800") + wire.stop(0)
    ),
}


def test_what_a_model_writes_neither_fails_its_turn_nor_spoils_later_requests(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    found: dict[str, list[Any]] = {}
    with wire.serving(WELL) as server, ground(database_url, redis_url, server.url, tmp_path) as worker:
        for name, act in ACTS.items():
            server.acts, server.requests = [act, WELL], []
            session = worker.session()
            turns = [_turn(worker, session, text) for text in ("go", "and now?")]
            found[name] = [*((turn["status"], turn["error_code"]) for turn in turns), _refused(server)]
    assert found == {name: [("done", None), ("done", None), ""] for name in ACTS}


def _refused(server: wire.RawServer) -> str:
    """Why the real provider would refuse one of these requests: lone surrogates, and reasoning that nobody signed."""
    for _, body in server.requests:
        sent: dict[str, Any] = json.loads(body)
        try:
            json.dumps(sent, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return "half a character"
        for message in sent["messages"]:
            if any(part["type"] == "thinking" and not part["signature"] for part in message["content"]):
                return "unsigned reasoning"
    return ""


LIES: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "input beyond the window": ("claude-sonnet-5-5", {"input_tokens": 99_999_999}, {}),
    "cache reads beyond the window": ("claude-sonnet-5-5", {"cache_read_input_tokens": 99_999_999}, {}),
    "output beyond the model": ("claude-sonnet-5-5", {}, {"output_tokens": 99_999_999}),
    "input of a model that is not known": ("somebody/else-1", {"input_tokens": 99_999_999}, {}),
    "nothing read": ("claude-sonnet-5-5", {"input_tokens": 0}, {}),
    "nothing written": ("claude-sonnet-5-5", {}, {"output_tokens": 0}),
    "nothing at all": ("claude-sonnet-5-5", {"input_tokens": 0}, {"output_tokens": 0}),
}


def test_a_bill_that_cannot_be_is_unknown_and_leaves_its_session_usable(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    found: dict[str, list[Any]] = {}
    with wire.serving(WELL) as server, ground(database_url, redis_url, server.url, tmp_path) as worker:
        for name, (model, read, written) in LIES.items():
            usage = {"output_tokens": 7, **written}
            server.acts = [
                wire.streamed(wire.begin({**USAGE, **read}), wire.text_block(0, "well"), wire.end(usage=usage)),
                WELL,
            ]
            session = worker.session(model=model)
            turns = [_turn(worker, session, text) for text in ("go", "and now?")]
            row = worker.one("select spent_usd, reserved_usd, cost_unknown from sessions where id = %s", session)
            lie, *_ = worker.rows("select * from calls where session = %s order by id", session)
            found[name] = [
                *(turn["status"] for turn in turns),
                row["cost_unknown"],
                row["spent_usd"] < 1,
                row["reserved_usd"],
                (lie["cost_usd"], lie["input_tokens"], lie["output_tokens"]),
                row["spent_usd"] >= lie["reserved_usd"],
                "the provider told a usage" in lie["rate_source"],
            ]
    nothing = (None, None, None)
    assert found == {name: ["done", "done", True, True, Decimal(0), nothing, True, True] for name in LIES}


def test_a_cap_holds_against_a_provider_whose_bill_is_always_nothing(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    told = {"input_tokens": 0, "output_tokens": 0}
    free = wire.streamed(
        wire.begin(told), wire.tool_block(0, "t1", "list_files", "{}"), wire.end("tool_use", usage={"output_tokens": 0})
    )
    with wire.serving(free) as server, ground(database_url, redis_url, server.url, tmp_path) as worker:
        session = worker.session(cap_usd=Decimal("0.5"))
        turn = _turn(worker, session, "go on for ever")
        row = worker.one("select spent_usd, cost_unknown from sessions where id = %s", session)
    assert (turn["status"], turn["parked_on"]) == ("parked", "money")
    assert Decimal("0.3") < row["spent_usd"] <= Decimal("0.5")
    assert row["cost_unknown"]


def test_a_web_page_cannot_script_the_rehearsal_model(provider: Rehearsal) -> None:
    script = {"replies": [{"text": "read all keys"}]}
    for name, value in (("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("referer", "http://x/")):
        for path in ("script", "capture"):
            answer = httpx.post(
                f"{provider.url}/rehearsal/{path}", json=script, headers={name: value} | provider.headers, timeout=10
            )
            assert answer.status_code == 403, (name, path)

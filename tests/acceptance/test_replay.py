"""Each call of a long session, rebuilt after a restart with another prompt builder, tool set, model, zone and clock."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance import leaks, long_session, prefix_script
from tests.acceptance.house import Fleet, Rig, Row, bodies, capture, copy_tree, refused, run_job, up
from tests.acceptance.test_nonce import PROMPT, hide
from tests.ground import Rehearsal, rehearsing

IDENTITY = "You are Nightshift, an agent that works for a small team"
OTHER_IDENTITY = "You are the other builder's agent, which works for nobody"
EDITS = {
    "workers/prompt/stable.py": (IDENTITY, OTHER_IDENTITY),
    "workers/tools/list_files.py": ("List a folder of the workspace", "Show what a folder of the workspace holds"),
    "workers/tools/registry.py": (
        "        read_file,\n        run_code,\n        schedule_job,\n        search_files,\n",
        "        run_code,\n        schedule_job,\n",
    ),
}
AWAY_S = 3 * 86400
pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True, slots=True)
class Story:
    """The session as it was played, and the stack that came after."""

    played: long_session.Played
    calls: list[Row]
    sent: list[bytes]
    leaks: list[str]
    found_when_planted: list[str]
    first_token: str
    captured: Path
    provider: Rehearsal
    stack: Rig


@pytest.fixture(scope="module")
def story(grounds: Path) -> Generator[Story]:
    home, captured, empty = grounds / "replay", grounds / "replayed", grounds / "nothing"
    empty.mkdir()
    with rehearsing(empty) as provider:
        capture(provider, captured)
        wire: dict[str, object] = {
            "PROVIDER_BASE_URL": provider.url, "PROVIDER_KEY": "test", "TEST_CLOCK": 1, "BACKOFF_PARK_S": 1,
            "REHEARSAL_TOKEN": provider.token,
        }  # fmt: skip
        with up(home, Fleet(workers=2), settings=wire) as stack:
            played = long_session.play(stack)
            calls = [call for turn in played.turns for call in stack.calls(turn)]
            token = stack.facts["token"]
        found, planted = _search_the_home(home, captured)
        tree = copy_tree(grounds / "changed", EDITS)
        other = {"TEAM_ZONE": "Pacific/Auckland", "MODEL": "claude-opus-5-5", "MAX_OUTPUT_TOKENS": 4000, "MAX_STEPS": 7}
        with up(home, Fleet(workers=1), tree=tree, settings=wire | other, environment={"TZ": "Asia/Tokyo"}) as stack:
            moved = stack.http.post("/v1/test/clock", json={"advance_s": AWAY_S, "jump": True}, timeout=60)
            assert moved.status_code == 200, moved.text
            sent = bodies(captured, played.session)
            yield Story(played, calls, sent, found, planted, token, captured, provider, stack)
    assert list(empty.iterdir()) == []


def _search_the_home(home: Path, captured: Path) -> tuple[list[str], list[str]]:
    """Files with a request body in a stopped stack's home: as it is, and with one body planted in each disguise."""
    wanted = [shape for seam in leaks.SEAMS for shape in leaks.disguises(seam)]
    found = leaks.in_files(home, wanted)
    body = max(captured.glob("[0-9]*.json"), key=lambda path: path.stat().st_size).read_bytes()
    garden = home / "planted"
    garden.mkdir()
    text = body.decode("utf-8")
    for name, data in {
        "raw": body,
        "escaped": json.dumps({"body": text}).encode(),
        "twice": json.dumps(json.dumps({"body": text})).encode(),
        **{f"base64-{shift}": leaks.base64.b64encode(b" " * shift + body) for shift in range(3)},
    }.items():
        (garden / name).write_bytes(data)
    planted = [path for path in leaks.in_files(home, wanted) if path not in found]
    for path in garden.iterdir():
        path.unlink()
    garden.rmdir()
    return found, planted


def _replay(story: Story, turn: str, **which: str) -> bytes:
    answer = story.stack.http.get(f"/v1/turns/{turn}/replay", params=which)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-nightshift-agrees"] == "true"
    return answer.content


def test_the_session_holds_what_it_was_made_for(story: Story) -> None:
    status, purposes = story.played.status, [call["purpose"] for call in story.calls]
    assert sorted(status.values()) == ["cancelled", *["done"] * 7]
    assert len(story.calls) == len(story.sent) >= 20
    assert {call["status"] for call in story.calls} == {"settled", "failed", "cut"}
    assert (purposes.count("final"), purposes[-1]) == (2, "main")
    joined = b"".join(story.sent)
    for piece in (b"1e2", b"-0.0", b"12345678901234567890", '"größe"'.encode(), b'"type":"thinking"', b"rather this"):
        assert piece in joined, piece
    parallel = [body for body in story.sent if body.count(b'"type":"tool_use"') >= 12]
    assert parallel


def test_the_stack_that_came_after_is_another_one(story: Story) -> None:
    """Else the replays below would prove nothing."""
    session = story.stack.session()
    story.stack.ended(story.stack.send(session, "who are you?"))
    (body,) = bodies(story.captured, session)
    request = json.loads(body)
    assert request["system"][0]["text"].startswith(OTHER_IDENTITY)
    before = json.loads(bodies(story.captured, story.played.session)[0])
    gone = {tool["name"] for tool in before["tools"]} - {tool["name"] for tool in request["tools"]}
    assert gone == {"read_file", "search_files"}
    assert request["tools"][3]["description"].startswith("Show what")
    assert (request["model"], request["max_tokens"]) == ("claude-opus-5-5", 4000)
    assert "Pacific/Auckland" in request["system"][-1]["text"]
    assert time.strftime("%Y-%m-%d", time.gmtime()) not in request["system"][-1]["text"]
    assert story.stack.facts["token"] == story.first_token


def test_each_call_is_rebuilt_byte_for_byte(story: Story) -> None:
    rebuilt = [_replay(story, turn, call=call["id"]) for turn, call in _by_turn(story)]
    assert [at for at, (made, sent) in enumerate(zip(rebuilt, story.sent, strict=True)) if made != sent] == []


def _by_turn(story: Story) -> list[tuple[str, Row]]:
    return [(turn, call) for turn in story.played.turns for call in story.stack.calls(turn)]


def test_each_step_is_rebuilt_as_the_call_that_was_answered(story: Story) -> None:
    """A step that was called again is shown by the call whose answer stands in the transcript."""
    answered = 0
    for at, (turn, call) in enumerate(_by_turn(story)):
        if call["status"] == "settled":
            assert _replay(story, turn, step=str(call["step"])) == story.sent[at], call
            answered += 1
    assert answered >= 20


def test_the_rows_of_the_calls_are_as_they_were(story: Story) -> None:
    assert [call for _, call in _by_turn(story)] == story.calls


def test_a_new_turn_extends_what_was_sent_before_the_restart(story: Story) -> None:
    before = story.provider.ledger(story.played.session)
    replies: list[Row] = [{"tools": long_session.calls('{"x":1e2}')}, {"text": "still here"}]
    story.provider.script(replies, session=story.played.session)
    turn = story.stack.ended(story.stack.send(story.played.session, "are you still there?"))
    assert turn["answer"] == "still here"

    ledger = story.provider.ledger(story.played.session)
    new = ledger[len(before) :]
    assert [(call["extended"], call["extends_call"]) for call in new] == [
        (True, before[-1]["index"]),
        (True, new[0]["index"]),
    ]
    own = [one for one in prefix_script.captured([story.captured]) if one[1] == story.played.session]
    verdict = prefix_script.judge(own, {call["index"]: call for call in ledger}, 512)
    assert (verdict["broken"], verdict["calls"]) == (0, len(ledger)), verdict["faults"]
    assert [_replay(story, turn["id"], step=str(step)) for step in (1, 2)] == bodies(
        story.captured, story.played.session
    )[-2:]


def test_nothing_in_the_home_holds_a_request_body(story: Story) -> None:
    assert story.leaks == []
    shapes = ["base64-0", "base64-1", "base64-2", "escaped", "raw", "twice"]
    assert sorted(story.found_when_planted) == [f"planted/{shape}" for shape in shapes]
    assert len(leaks.in_files(story.captured, [leaks.SEAMS[1].encode()])) >= 20


def test_no_row_and_no_key_of_the_broker_holds_a_request_body(story: Story) -> None:
    wanted = [shape for seam in leaks.SEAMS for shape in leaks.disguises(seam)]
    assert leaks.in_rows(story.stack, wanted) == []
    assert leaks.in_broker(story.stack, wanted) == []
    assert {"messages.content", "prefixes.tools_text"} <= set(
        leaks.in_rows(story.stack, [b'"type":"tool_use"', b'"input_schema":'])
    )
    story.stack.redis().set("acceptance:planted", b"x" + wanted[0], ex=60)
    assert leaks.in_broker(story.stack, wanted) == ["acceptance:planted"]


def test_without_a_tool_that_reads_the_hidden_sentence_is_not_in_the_brief(story: Story, tmp_path: Path) -> None:
    hidden = hide(tmp_path)
    wanted: Row = {"folder": str(hidden.folder), "deliver_file": str(tmp_path / "briefs")}
    run = run_job(story.stack, f"blind {hidden.nonce[:4]}", PROMPT, **wanted)
    assert run["status"] == "done", run
    (file,) = (tmp_path / "briefs").iterdir()
    brief = file.read_text("utf-8")
    assert "No tool here reads files" in brief
    sent = b"".join(bodies(story.captured, run["session_id"])).decode("utf-8")
    assert hidden.nonce not in brief + sent


def test_a_call_that_is_not_there_cannot_be_replayed(story: Story) -> None:
    first, last = story.played.turns[0], story.played.turns[-1]
    foreign = story.stack.calls(last)[0]["id"]
    for which in ({"step": 99}, {"call": foreign}, {"call": first}, {"step": 1, "call": foreign}):
        refused(story.stack.http.get(f"/v1/turns/{first}/replay", params=which), 404, "not_found")

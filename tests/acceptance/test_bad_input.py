"""Bad input, by name, over the whole stack: taken as it is, or refused with a code and a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance import long_session
from tests.acceptance.house import Rig, bodies, forget_scripts, refused, run_ended, run_job
from tests.acceptance.watching import events

TEN_MB = 10 * 1024 * 1024
NOBODY = "01900000-0000-7000-8000-000000000000"
NIGHTLY = "0 0 1 1 *"


# --- jobs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "zone", "code"),
    [
        ("0 0 30 2 *", "UTC", "cron_never_fires"),
        ("0 0 31 4,6,9,11 *", "Europe/Berlin", "cron_never_fires"),
        ("61 * * * *", "UTC", "cron_invalid"),
        ("* * * *", "UTC", "cron_invalid"),
        ("@sometimes", "UTC", "cron_invalid"),
        ("0 0 1 1 *", "Mars/Olympus", "zone_unknown"),
        ("0 0 1 1 *", "../../etc/passwd", "zone_unknown"),
    ],
)
def test_a_cron_that_never_fires_and_a_zone_that_does_not_exist_are_refused(
    fleet: Rig, cron: str, zone: str, code: str
) -> None:
    body = {"name": f"never {cron} {zone}", "cron": cron, "zone": zone, "prompt": "x"}
    sentence = refused(fleet.http.post("/v1/jobs", json=body), 422, code)
    assert zone in sentence or code != "zone_unknown"
    assert cron in sentence or "five fields" in sentence or code == "zone_unknown"
    assert fleet.rows("select 1 from jobs where name = %s", body["name"]) == []


def test_a_job_whose_folder_is_gone_fails_with_a_sentence_and_runs_again_once_it_is_back(
    fleet: Rig, tmp_path: Path
) -> None:
    folder = tmp_path / "material"
    folder.mkdir()
    made = fleet.http.post(
        "/v1/jobs", json={"name": f"gone {folder}", "cron": NIGHTLY, "prompt": "hello", "folder": str(folder)}
    ).json()
    folder.rmdir()
    asked = fleet.http.post(f"/v1/jobs/{made['id']}/run", json={}).json()
    run = run_ended(fleet, made["id"], asked["id"])
    assert (run["status"], run["error_code"], run["turn_id"]) == ("failed", "folder_missing", None)
    assert str(folder) in run["error_text"]

    folder.mkdir()
    again = fleet.http.post(f"/v1/jobs/{made['id']}/run", json={}).json()
    assert run_ended(fleet, made["id"], again["id"])["status"] == "done"


def test_a_folder_that_goes_while_its_job_runs_is_told_to_the_model(fleet: Rig, tmp_path: Path) -> None:
    folder = tmp_path / "material"
    folder.mkdir()
    (folder / "note.txt").write_text("here\n", "utf-8")
    name = f"going-{tmp_path.name}"
    look = long_session.calls('{"path":"input"}') + long_session.calls('{"path":"input/note.txt"}', tool="read_file")
    fleet.provider.post("script", {"name": name, "replies": [{"tools": look, "delay_s": 0.5}, {"text": "it is gone"}]})
    made = fleet.http.post(
        "/v1/jobs", json={"name": name, "cron": NIGHTLY, "prompt": f"script:{name}", "folder": str(folder)}
    ).json()
    before = len(fleet.provider.ledger())
    asked = fleet.http.post(f"/v1/jobs/{made['id']}/run", json={}).json()
    fleet.wait(calls=before + 1)
    shutil.rmtree(folder)
    run = run_ended(fleet, made["id"], asked["id"])
    forget_scripts(fleet)
    assert (run["status"], fleet.turn(run["turn_id"])["answer"]) == ("done", "it is gone")
    results = fleet.rows("select is_error, result from tool_runs where turn = %s", run["turn_id"])
    assert [row["is_error"] for row in results] == [True, True], results
    assert not any(str(tmp_path) in row["result"] for row in results), "a path of the host went to the model"


# --- input ----------------------------------------------------------------------------------------------------------


def test_ten_megabytes_are_taken_and_the_turn_ends_with_a_clear_word(fleet: Rig) -> None:
    session, other = fleet.session(), fleet.session()
    words = "The quick brown fox, größe 1e2, jumps over the lazy dog.\n"
    text = (words * (TEN_MB // len(words.encode()) + 1)).encode()[:TEN_MB].decode("utf-8", "ignore")
    turn = fleet.send(session, text)
    small = fleet.ended(fleet.send(other, "still there?"), 20)
    view = fleet.ended(turn, 60)
    assert small["status"] == "done"
    assert (view["status"], view["error"]["code"], view["cost_usd"]) == ("failed", "context_overflow", 0.0)
    assert "window" in view["error"]["message"]
    assert fleet.provider.ledger(session) == []
    assert fleet.ended(fleet.send(session, "and now?"), 60)["error"]["code"] == "context_overflow"


def test_ten_megabytes_and_a_byte_are_refused(fleet: Rig) -> None:
    answer = fleet.http.post(f"/v1/sessions/{fleet.session()}/turns", json={"input": "x" * (TEN_MB + 1)})
    assert "10,485,760" in refused(answer, 413, "input_too_large")


def test_input_that_the_providers_window_refuses_fails_as_an_overflow(fleet: Rig) -> None:
    """The provider's word counts, whatever the estimate said."""
    session = fleet.session()
    fleet.script(session, [{"fault": {"kind": "overflow"}}])
    view = fleet.ended(fleet.send(session, "a little"))
    assert (view["status"], view["error"]["code"]) == ("failed", "context_overflow")
    assert [call["status"] for call in fleet.calls(view["id"])] == ["failed"]


def test_nul_marks_and_odd_letters_come_through_as_they_are(fleet: Rig, captured: Path) -> None:
    session, text = fleet.session(), long_session.ODD_TEXT
    replied = text.replace("\0", "\ufffd")  # an answer is also a column of text, which holds no NUL
    fleet.script(session, [{"text": text, "chunks": 9}])
    turn = fleet.send(session, text)
    view = fleet.ended(turn)
    assert view["status"] == "done"
    (sent,) = bodies(captured, session)
    assert json.loads(sent)["messages"][0]["content"][0]["text"] == text
    said = fleet.http.get(f"/v1/sessions/{session}/messages").json()["items"]
    assert [one["content"][0]["text"] for one in said] == [text, replied]
    assert _streamed(fleet, turn) == view["answer"] == replied


def test_lone_surrogates_of_an_input_become_replacement_characters(fleet: Rig, captured: Path) -> None:
    session = fleet.session()
    raw = rb'{"input": "half \ud800 of \udc00\ud83d a pair \ud83d\ude00"}'
    answer = fleet.http.post(f"/v1/sessions/{session}/turns", content=raw)
    assert answer.status_code == 202, answer.text
    assert fleet.ended(answer.json()["turn"]["id"])["status"] == "done"
    (sent,) = bodies(captured, session)
    shown = json.loads(sent)["messages"][0]["content"][0]["text"]
    assert shown == "half \ufffd of \ufffd\ufffd a pair \U0001f600"


def test_arguments_of_the_model_that_no_provider_would_take_back_do_not_spoil_the_session(
    fleet: Rig, captured: Path
) -> None:
    session = fleet.session()
    odd = ('{"path":"\\ud800"}', '{"path":"a\\u0000b"}', '{"\\udfff":1e2}', '{"path":"\\ud83d\\ude00"}')
    fleet.script(session, [{"text": "odd", "tools": long_session.calls(*odd)}, {"text": "over it"}])
    view = fleet.ended(fleet.send(session, "be odd"))
    assert (view["status"], view["answer"], view["error"]) == ("done", "over it", None)
    assert [call["state"] for call in fleet.provider.ledger(session)] == ["done", "done"]
    last = bodies(captured, session)[-1]
    assert last.count(b'"type":"tool_use"') == last.count(b'"type":"tool_result"') == 4
    replay = fleet.http.get(f"/v1/turns/{view['id']}/replay", params={"step": 2})
    assert replay.content == last


def _streamed(stack: Rig, turn: str) -> str:
    """What a viewer has who comes once and reads to the end."""
    texts: dict[int, str] = {}
    for _, kind, data in events(stack.http, turn, None):
        if kind == "text.delta":
            texts[data["step"]] = texts.get(data["step"], "") + data["text"]
        elif kind == "snapshot":
            texts = {one["step"]: one["text"] for one in data["steps"]}
    return texts[max(texts)]


# --- large results --------------------------------------------------------------------------------------------------


def test_a_result_of_fifty_megabytes_is_cut_and_says_so(fleet: Rig, captured: Path, tmp_path: Path) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    line = "x" * 99 + "\n"
    with (folder / "lines.txt").open("w") as file:
        for _ in range(50):
            file.write(line * 10_486)
    (folder / "one.txt").write_bytes(b"y" * (50 * 1024 * 1024))
    name = f"large-{tmp_path.name}"
    wishes = long_session.calls('{"path":"input/lines.txt"}', '{"path":"input/one.txt"}', tool="read_file")
    wishes += long_session.calls('{"pattern":"x"}', '{"pattern":"y+"}', tool="search_files")
    fleet.provider.post("script", {"name": name, "replies": [{"tools": wishes}, {"text": "read"}]})

    run = run_job(fleet, name, f"script:{name}", folder=str(folder))

    forget_scripts(fleet)
    assert (run["status"], fleet.turn(run["turn_id"])["answer"]) == ("done", "read")
    last = json.loads(bodies(captured, run["session_id"])[-1])
    results = ["".join(part["text"] for part in one["content"]) for one in last["messages"][-1]["content"]]
    assert [len(text) < 60_000 for text in results] == [True] * 4
    lines, one, found, hit = (text.splitlines() for text in results)
    assert lines[-1] == "[lines 1-397 of 524300 shown; read on with offset=398]"
    assert one[-1] == "[line 1 is cut after 39,700 characters of 52,428,800 bytes]"
    assert "have more than the 50 shown" in found[-1]
    assert [len(hit), hit[0][:17], hit[0][-1]] == [2, "input/one.txt:1: ", "…"], "one line is one match"
    sizes = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in fleet.pids("worker")]
    assert max(sizes) < 400 * 1024 * 1024, sizes

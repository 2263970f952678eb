"""What stands in a file is in the brief because it was read through the tools: the provider sees an empty folder."""

from __future__ import annotations

import json
import random
import secrets
import string
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.house import Row, bodies, run_job
from tests.chaos.rig import Rig, family
from tests.ground import until

PROMPT = "Write the overnight brief on everything in input/: list it, read each file, and quote what is due."


@dataclass(frozen=True, slots=True)
class Hidden:
    folder: Path
    path: str
    sentence: str
    nonce: str


def hide(root: Path) -> Hidden:
    """One file of random name, kind and depth that holds one random sentence, among others that say nothing."""
    nonce = "".join(random.choices(string.ascii_lowercase, k=12))
    sentence = f"The {nonce} must be back at gate {secrets.token_hex(3)} by Friday."
    depth = [secrets.token_hex(random.randint(2, 8)) for _ in range(random.randint(1, 5))]
    folder = root / "input"
    place = folder.joinpath(*depth)
    place.mkdir(parents=True)
    path = place / f"{secrets.token_hex(5)}{random.choice(('.md', '.txt', ''))}"
    path.write_text(f"Nothing here.\n\n{sentence}\n", "utf-8")
    (folder / "readme.txt").write_text("Old papers.\n", "utf-8")
    return Hidden(folder, path.relative_to(folder).as_posix(), sentence, nonce)


@pytest.fixture
def hidden(tmp_path: Path) -> Hidden:
    return hide(tmp_path)


def test_a_sentence_hidden_in_the_folder_of_a_job_is_in_the_delivered_brief(
    fleet: Rig, captured: Path, hidden: Hidden, tmp_path: Path
) -> None:
    name, team = f"nonce {hidden.nonce[:4]}", fleet.session()
    wanted: Row = {"folder": str(hidden.folder), "deliver_file": str(tmp_path / "briefs"), "deliver_session": team}
    run = run_job(fleet, name, PROMPT, **wanted)

    assert (run["status"], run["manual"]) == ("done", True), run
    assert sorted((one["kind"], one["status"]) for one in run["deliveries"]) == [("file", "done"), ("session", "done")]
    (file,) = (tmp_path / "briefs").iterdir()
    assert str(file) in [one["target"] for one in run["deliveries"]]
    brief = file.read_text("utf-8")
    assert hidden.sentence in brief
    assert hidden.path in brief
    turn = fleet.turn(run["turn_id"])
    assert (turn["status"], turn["class"]) == ("done", "job")
    assert turn["answer"].strip() in brief
    transcript = fleet.http.get(f"/v1/sessions/{run['session_id']}/messages").raise_for_status().text
    assert hidden.nonce in transcript
    told = until(lambda: _messages_with(fleet, team, hidden.sentence), 20, "the delivery in the team's session")
    assert all(name in one for one in told)
    _came_by_the_read_tool(captured, run["session_id"], hidden)


def _messages_with(stack: Rig, session: str, words: str) -> list[str]:
    found = stack.http.get(f"/v1/sessions/{session}/messages").raise_for_status().json()["items"]
    texts = [json.dumps(one, ensure_ascii=False) for one in found]
    return [text for text in texts if words in text]


def _came_by_the_read_tool(captured: Path, session: str, hidden: Hidden) -> None:
    """The first request does not hold it; the one in which it first stands has it as the result of a tool."""
    sent = [body.decode("utf-8") for body in bodies(captured, session)]
    assert hidden.nonce not in sent[0]
    first = next(body for body in sent if hidden.nonce in body)
    before = first[: first.index(hidden.nonce)]
    assert before.rindex('"type":"tool_result"') > before.rindex('"role":"user"')
    assert '"name":"read_file"' in before


def test_the_provider_runs_in_a_folder_that_stays_empty(fleet: Rig) -> None:
    (pid,) = fleet.pids("rehearsal")
    for one in (pid, *family(pid)):
        folder = Path(f"/proc/{one}/cwd").resolve(strict=True)
        assert folder.is_relative_to(fleet.home)
        assert list(folder.iterdir()) == []


def test_an_attached_folder_is_read_only_for_the_job(fleet: Rig, hidden: Hidden) -> None:
    before = {path: path.stat().st_mtime_ns for path in hidden.folder.rglob("*")}
    name = f"scribe-{hidden.nonce}"
    wish = {"name": "write_file", "input": {"path": "input/readme.txt", "content": "mine now"}}
    fleet.provider.post("script", {"name": name, "replies": [{"tools": [wish]}, {"text": "tried"}]})

    run = run_job(fleet, name, f"Write into it. script:{name}", folder=str(hidden.folder))

    assert (run["status"], fleet.turn(run["turn_id"])["answer"]) == ("done", "tried")
    (result,) = fleet.rows("select status, result, is_error from tool_runs where turn = %s", run["turn_id"])
    assert (result["status"], result["is_error"]) == ("failed", True)
    assert {path: path.stat().st_mtime_ns for path in hidden.folder.rglob("*")} == before

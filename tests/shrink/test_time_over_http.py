"""Time travel as a person does it: over HTTP and on the command line, with a worker that carries it out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from typing import Any
from uuid import UUID

import pytest

from api.cli.main import main
from deploy.local.servers import Servers
from shared.request.edits import EditRow
from tests.api.conftest import fresh_database
from tests.api.serving import Api, Person, serving, settings_for
from tests.ground import ROOT, Ground, Rehearsal, ground
from tests.shrink.compacting import GOOD, todo
from tests.shrink.travel import edited, messages_of

CANARY = "heron 4711"


class House:
    """An API and a worker on one database."""

    def __init__(self, worker: Ground, api: Api, person: Person, provider: Rehearsal) -> None:
        self.worker, self.api, self.person, self.provider = worker, api, person, provider

    def told(self, session: str, text: str, *replies: dict[str, Any]) -> str:
        self.provider.script(list(replies), session=session)
        turn = self.person.turn(session, text)
        deadline = time.monotonic() + 60
        while self.person.get(f"/v1/turns/{turn}").json()["status"] != "done":
            assert time.monotonic() < deadline, "the turn does not end"
            time.sleep(0.02)
        return turn


@pytest.fixture(scope="module")
def house(
    servers: Servers, template: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[House]:
    provider.reset()
    home, stop = tmp_path_factory.mktemp("home"), threading.Event()
    with (
        fresh_database(servers, template) as url,
        ground(url, servers.valkey.url, provider.url, home, tail_messages=4, tail_tokens=20_000) as worker,
        serving(settings_for(url, servers.valkey.url, home, provider_base_url=provider.url, rehearsal=True)) as api,
    ):

        def work() -> None:
            while not stop.wait(0.02):
                worker.look()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield House(worker, api, api.person("anna"), provider)
        finally:
            stop.set()
            thread.join(30)


@pytest.fixture
def line(house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A command of the person: its exit code and what it printed."""
    monkeypatch.setenv("NIGHTSHIFT_URL", house.api.url)
    monkeypatch.setenv("NIGHTSHIFT_TOKEN", house.person.token)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_person_takes_back_brings_back_and_reads_what_that_did_not_undo(house: House, line: Any) -> None:
    session = house.person.session()
    house.told(session, "first", {"text": "one"})
    write = {"name": "write_file", "input": {"path": "a.txt", "content": CANARY}}
    second = house.told(session, f"second {CANARY}", {"text": "I write.", "tools": [write]}, {"text": "two"})

    code, out, _ = line("rewind", session, "--to", second)

    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("taken back: messages ")
    assert lines[0].endswith(" tokens")
    assert lines[1] == "what this does not undo:"
    assert "write_file" in lines[2]
    assert "a.txt" in lines[2]
    assert lines[3] == f"nightshift restore {session} brings them back"
    shown = house.person.get(f"/v1/sessions/{session}/messages", view="projection").json()
    assert CANARY not in json.dumps(shown)
    assert [one["role"] for one in shown["items"]] == ["user", "assistant"]
    assert len(shown["rewound"]) == 1
    states = [one["state"] for one in house.person.get(f"/v1/sessions/{session}/messages").json()["items"]]
    assert states == ["live", "live", *["rewound"] * 4]
    refused = line("rewind", session, "--to", second)
    assert (refused[0], refused[2].split(":")[0]) == (1, "turn_rewound")

    code, out, _ = line("restore", session)

    assert (code, out.startswith("they stand again, where they stood · ")) == (0, True)
    assert CANARY in house.person.get(f"/v1/sessions/{session}/messages", view="projection").text
    assert line("restore", session)[2].startswith("nothing_to_restore: ")
    assert line("rewind", session, "--to", "yesterday")[0] == 2


def test_a_compaction_and_what_the_model_sees_after_it_in_readable_lines(house: House, line: Any) -> None:
    session = house.person.session(title="long")
    for n in range(4):
        house.told(session, f"nr {n}", {"text": f"step {n}", "tools": [todo(n)]}, {"text": f"done {n}"})
    house.provider.script([{"text": GOOD}], session=session, summaries=True)

    code, out, _ = line("compact", session)

    assert code == 0
    assert out.startswith("a summary stands for messages ")
    last = house.told(session, "and now?", {"text": "fine"})
    first, _ = messages_of(house.worker, UUID(last))
    edited(house.worker, UUID(session), EditRow(0, "stub", first, block=0, text="[left out]"))
    code, out, _ = line("show", session, "--context")
    assert code == 0
    lines = out.splitlines()
    starts = [text.split("  ")[0] for text in lines]
    assert [word for word in starts if word in ("floor", "messages", "cache", "meters", "estimate", "breaker")] == [
        "floor", "messages", "cache", "meters", "estimate", "breaker",
    ]  # fmt: skip
    assert "reduced from" in lines[0]
    for wanted in ("tools", "stable", "volatile", "summary ", "(asked)", "1 blocks are stubs", "warm until"):
        assert wanted in out, wanted
    assert any(text.strip().endswith("tokens") and "compact (asked) at step" in text for text in lines)
    shown = house.person.get(f"/v1/sessions/{session}/messages", view="projection").json()
    parts = [part for one in shown["items"] for part in one["parts"]]
    assert [part["kind"] for part in parts].count("summary") == 1
    assert [part["stubs"] for part in parts if part["kind"] == "message" and part["stubs"]] == [[0]]
    view = house.person.get(f"/v1/sessions/{session}").json()
    assert view["breaker"]["verdict_due"] is False
    assert view["calibration"]["billed"] > 0
    assert 0.8 < view["calibration"]["raw_ratio"] < 2.5
    (decided,) = house.person.get(f"/v1/sessions/{session}/reductions").json()["items"]
    assert (decided["decision"], decided["cause"]) == ("compact", "asked")
    context = house.person.get(f"/v1/sessions/{session}/context").json()
    assert context["messages"]["summarised"] > 0
    assert context["floor"]["tokens"] + context["message_tokens"] == context["tokens"]
    assert context["advice"] == []


def test_a_session_whose_floor_is_over_the_line_says_so_with_what_to_do(
    house: House, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = house.person.session()
    house.told(session, "hello", {"text": "hello"})
    settings = house.api.settings.model_copy(update={"context_threshold": 0.001})
    with serving(settings) as other:
        monkeypatch.setenv("NIGHTSHIFT_URL", other.url)
        code, out, _ = line("show", session, "--context")
    assert code == 0
    assert "! tools and system prompt alone take " in out
    assert "a profile with fewer tools" in out
    assert "alone take" not in line("show", session, "--context", "--json")[1]


def test_a_chat_takes_back_and_makes_smaller(house: House) -> None:
    """Piped, as a script would: what came of it is told before the chat ends."""
    session = house.person.session()
    house.told(session, "first", {"text": "one"})
    house.told(session, "second", {"text": "two"})
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "NIGHTSHIFT_URL": house.api.url,
        "NIGHTSHIFT_TOKEN": house.person.token,
    }  # fmt: skip
    said = subprocess.run(
        [sys.executable, "-m", "api.cli", "chat", "--session", session], input="/rewind\n/rewind 1\n",
        capture_output=True, text=True, env=environment, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    lines = said.stderr.splitlines()
    assert said.returncode == 0, said.stderr
    assert "/rewind 1 " in said.stderr
    assert "two" in next(text for text in lines if text.startswith("/rewind 1 "))
    assert any(text.startswith("taken back: messages ") for text in lines)
    assert '"second"' not in house.person.get(f"/v1/sessions/{session}/messages", view="projection").text
    said = subprocess.run(
        [sys.executable, "-m", "api.cli", "chat", "--session", session], input="/restore\n/compact\n",
        capture_output=True, text=True, env=environment, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    assert "they stand again, where they stood" in said.stderr
    assert "nothing to gain: " in said.stderr

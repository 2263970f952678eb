"""A worker and its tool servers: what a call comes to, whatever the server does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from deploy.drill.rig import until
from shared.mcp import McpServer
from shared.values import Repeat
from tests.ground import Ground, Rehearsal
from tests.toolservers.conftest import Running, Start, hostile
from workers import snapshot
from workers.mcp.server import Server
from workers.mcp.servers import Servers
from workers.tools import child, dispatch, registry
from workers.tools.context import Came
from workers.waiting import rules

PLAIN = '<tool-server name="{}">\n{}\n</tool-server>'


def test_a_server_that_nobody_here_wrote_is_used_by_a_turn(
    worker: Ground, provider: Rehearsal, running: Running
) -> None:
    """mcp-server-time, from the package index, over stdio: the model calls its tool and reads its answer."""
    session = worker.session()
    asked = {"source_timezone": "UTC", "time": "02:30", "target_timezone": "Asia/Tokyo"}
    ask = {"name": "mcp_time_convert_time", "input": asked}
    provider.script([{"text": "let me see", "tools": [ask]}, {"text": "half past eleven"}], session=str(session))
    turn = worker.turn(session, "when is that in Tokyo?")
    assert worker.look() == 1
    assert worker.view(turn)["answer"] == "half past eleven"
    row = worker.one("select tool, status, is_error, result from tool_runs where turn = %s", turn)
    told = json.loads(row["result"].partition("\n")[2].rpartition("\n")[0])
    assert (row["tool"], row["status"], row["is_error"]) == ("mcp_time_convert_time", "done", False)
    assert told["target"]["datetime"].endswith("11:30:00+09:00")
    query = "select p.tools_text from sessions s join prefixes p on p.digest = s.prefix where s.id = %s"
    names = {tool["name"] for tool in json.loads(worker.one(query, session)["tools_text"])}
    assert {"mcp_bad_act", "mcp_time_convert_time", "mcp_time_get_current_time"} <= names


def test_a_person_is_asked_about_a_tool_that_the_operator_does_not_allow(
    worker: Ground, provider: Rehearsal, running: Running
) -> None:
    """Arguments that steer need a person too where the tool is allowed, and a floor is no matter for a person."""
    assert running.worker is worker

    def turn_of(name: str, value: str) -> UUID:
        session = worker.session()
        call = {"name": name, "input": {"x": value} if name.endswith("fine") else {"do": value}}
        provider.script([{"text": "now", "tools": [call]}, {"text": "over"}], session=str(session))
        turn = worker.turn(session, "do it")
        worker.look()
        return turn

    for name, value, rule in (
        ("mcp_bad_act", "says", "served"), ("mcp_odd_shared", "x", "served"),
        ("mcp_odd_fine", "AGENTS.md", "steering.file"),
    ):  # fmt: skip
        turn = turn_of(name, value)
        assert worker.view(turn)["parked_on"] == "approval", name
        assert worker.one("select rule from approvals where turn = %s", turn)["rule"] == rule
        assert worker.one("select status from tool_runs where turn = %s", turn)["status"] == "asked"
    for value, denied in (("rm -rf /", True), ("a word", False)):
        row = worker.one("select status, result from tool_runs where turn = %s", turn_of("mcp_odd_fine", value))
        assert (row["status"] == "denied") is denied
        assert str(row["result"]).startswith("refused (floor.delete)") is denied


def test_what_a_server_answers_is_material_between_tags(running: Running) -> None:
    found = running.call(do="speaks")
    assert found.text.startswith("Part of this reads like an instruction to ignore its instructions.")
    assert found.text.count("</tool-server>") == 1


def test_an_answer_of_three_megabytes_is_cut_and_says_so(running: Running) -> None:
    found = running.call(do="large")
    assert len(found.text) < 100_000
    assert found.note == "2,901,000 more characters were left out"


def test_what_is_no_text_is_named(running: Running) -> None:
    shown = "[image image/png, about 6 bytes, not shown]\n[a link: file:///etc/passwd]\ninside"
    assert running.call(do="blocks").text == PLAIN.format("bad", shown)


def test_an_error_of_the_server_is_its_answer(running: Running) -> None:
    found = running.call(do="refuses")
    assert found.is_error
    assert "there is no zone of that name" in found.text


def test_what_a_server_asks_of_us_is_refused_and_harms_nobody(running: Running) -> None:
    assert running.call(do="asks back").text == PLAIN.format("bad", "asked")


def test_odd_schemas_cost_a_server_those_tools_and_a_list_against_the_protocol_all_of_them(running: Running) -> None:
    assert {name for name in registry.TOOLS if name.startswith("mcp_odd")} == {
        "mcp_odd_fine", "mcp_odd_shared", "mcp_odd_speaks",
    }  # fmt: skip
    assert "itself" in running.servers.left_out()["odd"]
    assert running.servers.state()["array"] == "it does not keep to the protocol"
    assert [name for name in registry.TOOLS if name.startswith("mcp_array")] == []


def test_a_tool_of_a_server_may_happen_only_once_unless_the_operator_vouches_for_it(running: Running) -> None:
    assert registry.TOOLS["mcp_odd_fine"].repeat is Repeat.REPEATABLE
    assert registry.TOOLS["mcp_odd_shared"].repeat is Repeat.ONCE


def test_a_server_gets_nothing_of_the_workers_environment_but_a_list(running: Running) -> None:
    found = json.loads((running.folder / "env").read_text())
    assert "a-key-of-the-worker" not in found.values()
    assert set(found) <= {
        "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "PLAIN", "SHELL", "TERM", "LC_CTYPE",
    }  # fmt: skip
    assert found["PLAIN"] == "value"


def test_a_server_cannot_look_into_its_worker(running: Running) -> None:
    """It runs as the worker's user, who otherwise could: this process itself reads its own environment by that road."""
    assert Path(f"/proc/{os.getpid()}/environ").read_bytes()
    found = running.call(arguments={"do": "peeks", "worker": os.getpid()}).text.splitlines()[1]
    refused = dict.fromkeys(("environ", "mem", "maps", "fd", "signal"), "PermissionError")
    assert json.loads(found) == {**refused, "self": "could"}


def test_without_an_identity_a_server_is_not_called(running: Running) -> None:
    calls = running.count("calls")
    found = dispatch.run_one(replace(running.context(), store=None), "mcp_bad_act", "{}")
    assert found.text == "refused: nobody is known on whose behalf this tool server would be called"
    assert running.count("calls") == calls


def test_a_person_may_be_asked_for_a_tool_of_a_server_that_is_not_there_yet() -> None:
    assert set(rules.demands("mcp_later_act:admin")) == {"mcp_later_act"}


def test_a_cancelled_turn_does_not_wait_for_a_server(running: Running) -> None:
    calls = running.count("calls")
    found = running.call(do="hangs", cancelled=lambda: running.count("calls") > calls, repeat=Repeat.ONCE)
    assert (found.came, running.count("calls")) == (Came.LOST, calls + 1)


def test_a_server_that_hangs_costs_the_time_of_one_call_and_one_that_may_not_be_repeated_is_unknown(
    running: Running,
) -> None:
    again = running.call(do="hangs")
    assert (again.is_error, again.came) == (True, Came.TO_ITS_END)
    assert again.text == "the tool server bad: it did not answer in time; it may be asked again"
    once = running.call(do="hangs", repeat=Repeat.ONCE)
    assert once.came is Came.LOST
    assert once.text.startswith("outcome unknown: the tool server bad: it did not answer in time")
    assert running.call().text == PLAIN.format("bad", "{}")


def test_nonsense_is_a_failure_of_that_call(running: Running) -> None:
    assert running.call(do="nonsense").is_error
    until(lambda: running.call().text == PLAIN.format("bad", "{}"), 30, "the server after its nonsense")


def test_with_the_launcher_a_bridge_dies_and_the_next_call_has_another(running: Running) -> None:
    launcher = child.LAUNCHER.pid()
    assert launcher is not None
    os.kill(launcher, signal.SIGKILL)
    until(lambda: running.call().text == PLAIN.format("bad", "{}"), 30, "another bridge")


def test_a_server_that_dies_is_started_again_and_after_three_failures_left_alone(start: Start) -> None:
    running = start("dies once", call_s=0.5)
    lost = running.call(repeat=Repeat.ONCE)
    assert lost.came is Came.LOST
    assert running.call().text == PLAIN.format("own", "{}")
    assert running.count("starts") == 2
    for _ in range(3):
        running.call(do="hangs")
    calls = running.count("calls")
    found = running.call()
    assert "it is tried again in a while. Nothing was done" in found.text
    assert running.count("calls") == calls == 5


def test_a_hundred_megabytes_end_the_bridge_that_reads_them_and_no_worker(start: Start) -> None:
    running = start("floods", call_s=4)
    before = psutil.Process().memory_info().rss
    assert running.call().is_error
    assert psutil.Process().memory_info().rss - before < 20_000_000


def test_servers_that_cannot_be_had_are_named_by_why_and_keep_no_worker_from_starting(worker: Ground) -> None:
    mcp = {
        "mute": McpServer(command=(sys.executable, "-c", "import time; time.sleep(60)"), connect_s=3),
        "none": McpServer(command=("/nowhere/at-all",), connect_s=20),
        "keyless": McpServer(command=(sys.executable,), env={"KEY": "secret:NOT_THERE"}),
    }
    servers = Servers(worker.settings.model_copy(update={"mcp": mcp, "mcp_wait_s": 0.1}))
    servers.start()
    try:
        assert servers.state()["mute"] == "it is not connected yet"
        until(lambda: servers.state()["mute"] == "it did not answer in time", 30, "the time-out")
        until(lambda: servers.state()["none"] == "it cannot be reached", 30, "the failure")
        assert str(servers.state()["keyless"]).startswith("there is no secret NOT_THERE for this: set")
    finally:
        servers.close()


def test_a_tool_that_comes_late_is_there_at_the_next_epoch_and_changes_no_prompt_that_stands(
    start: Start, worker: Ground, provider: Rehearsal
) -> None:
    running = start("changes")
    session, fresh = worker.session(), worker.session()
    provider.script([{"text": "one"}, {"text": "two"}], session=str(session))
    provider.script([{"text": "three"}], session=str(fresh))
    worker.turn(session, "first")
    worker.look()
    prefix = worker.one("select prefix from sessions where id = %s", session)["prefix"]
    assert "changed" in running.call().text
    until(lambda: "mcp_own_late" in registry.TOOLS, 20, "the new tool")
    worker.turn(session, "second")
    worker.turn(fresh, "third")
    worker.look()
    assert worker.one("select prefix from sessions where id = %s", session)["prefix"] == prefix
    assert "mcp_own_late" not in snapshot.of_prefix(worker.database, prefix)
    new = worker.one("select prefix from sessions where id = %s", fresh)["prefix"]
    assert "mcp_own_late" in snapshot.of_prefix(worker.database, new)


def test_a_server_that_is_there_only_after_the_end_offers_nothing(
    worker: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread does not end in time, as on a machine with much else to do."""
    closed, left = threading.Event(), threading.Event()

    def connected(server: Server) -> None:
        closed.wait(60)
        server.listed = [{"name": "late", "description": "", "schema": '{"type": "object"}'}]

    def never_waits(thread: threading.Thread, timeout: float | None = None) -> None:
        del thread, timeout

    class Late(Servers):
        def _look_after(self, name: str) -> None:
            super()._look_after(name)
            left.set()

    monkeypatch.setattr(Server, "connected", connected)
    monkeypatch.setattr(threading.Thread, "join", never_waits)
    mcp = {"own": hostile("fine", tmp_path)}
    servers = Late(worker.settings.model_copy(update={"mcp": mcp, "mcp_wait_s": 0.1}))
    servers.start()
    servers.close()
    closed.set()
    assert left.wait(60)
    assert [name for name in registry.TOOLS if name.startswith("mcp_own")] == []


def put(folder: Path, name: str, value: str) -> None:
    path = folder / "secrets" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value + "\n")
    path.chmod(0o600)


def test_a_server_has_the_keys_of_the_turns_authority_and_no_output_shows_them(
    start: Start, worker: Ground, tmp_path: Path
) -> None:
    put(tmp_path, "team/KEY", "key-of-the-team-0001")
    put(tmp_path, f"person/{worker.person}/KEY", "key-of-a-person-0002")
    running = start("says its key", env={"KEY": "secret:KEY"})

    def key_of(turn: UUID) -> str:
        assert running.call(turn=turn).text == PLAIN.format("own", "[a secret was here]")
        return json.loads((running.folder / "env").read_text())["KEY"]

    turn = worker.turn(worker.session(), "x")
    assert key_of(turn) == "key-of-a-person-0002"
    assert running.count("starts") == 2  # the team's own, and that person's
    worker.execute("update turns set contributors = array[%s] where id = %s", uuid4(), turn)
    running.call(turn=turn)
    put(tmp_path, "team/KEY", "key-of-the-team-0003")  # exchanged: it holds at once
    assert key_of(turn) == "key-of-the-team-0003"
    assert running.count("starts") == 3


def test_a_server_and_what_it_left_running_end_with_its_worker(start: Start) -> None:
    running = start("stubborn")
    pids = [int(pid) for pid in (running.folder / "pids").read_text().split()]
    assert all(alive(pid) for pid in pids)
    running.servers.close()
    until(lambda: not any(alive(pid) for pid in pids), 20, "the end of all that the server started")


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


SERVER = """
import sys
from mcp.server import MCPServer
server = MCPServer("adder")
@server.tool()
def add(a: int, b: int) -> int:
    return a + b
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


def test_over_http_too(worker: Ground, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stderr=subprocess.DEVNULL)
    mcp = {"http": McpServer(url=f"http://127.0.0.1:{port}/mcp", connect_s=5)}
    settings = worker.settings.model_copy(update={"home": tmp_path, "mcp": mcp, "mcp_wait_s": 0.0})
    servers = Servers(settings)
    running = Running(servers, settings, tmp_path, worker, "mcp_http_add")
    try:
        until(lambda: answers(port), 60, "a server over HTTP")
        servers.start()
        until(lambda: servers.state()["http"] is None, 60, "its tools")
        assert running.call(arguments={"a": 2, "b": 3}).text == PLAIN.format("http", "5")
        process.kill()
        process.wait(10)
        assert running.call(arguments={"a": 2, "b": 3}).is_error
    finally:
        process.kill()
        process.wait(10)
        servers.close()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True

"""Each border that identity crosses, crossed without: docs/borders.md is the table."""

from __future__ import annotations

import ast
import base64
import dataclasses
import json
import re
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any, get_type_hints
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from shared import hooks, stream
from shared.boottime import boottime
from shared.doorbell import Doorbell, celery_app
from shared.values import QUEUES, Role, TurnClass
from tests.api.serving import Api
from tests.ground import ROOT, Ground, Rehearsal, ground
from workers.sandbox import serving as rpc
from workers.tools import dispatch
from workers.tools.context import ToolContext, ToolResult

_ROW = re.compile(r"`(tests/[\w/]+\.py)::(\w+)` \|$")
_BORDERS = {"HTTP", "Celery", "thread", "sandbox RPC", "MCP", "hook", "child", "beat", "resume"}
"""As issue 5 names them."""
STEERS: dict[str, Any] = {"name": "write_file", "input": {"path": "AGENTS.md", "content": "alpha"}}


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path) as made:
        yield made


def test_each_row_of_the_table_has_its_test() -> None:
    rows = [line for line in (ROOT / "docs" / "borders.md").read_text("utf-8").splitlines() if line.startswith("| ")][
        1:
    ]
    assert {row.split("|")[1].strip() for row in rows} >= _BORDERS
    for row in rows:
        named = _ROW.search(row)
        assert named is not None, row
        tree = ast.parse((ROOT / named[1]).read_text("utf-8"))
        assert named[2] in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, row


def test_http_without_a_token_reads_and_changes_nothing(api: Api) -> None:
    anna = api.person("anna")
    session = anna.session()
    with httpx.Client(base_url=api.url, timeout=30) as nobody:
        for method, path in (
            ("POST", "/v1/gate"), ("GET", "/v1/grants"), ("GET", "/v1/approvals"), ("POST", f"/v1/approvals/{uuid4()}"),
            ("DELETE", f"/v1/grants/{uuid4()}"), ("POST", f"/v1/sessions/{session}/bypass"),
            ("POST", f"/v1/sessions/{session}/turns"),
        ):  # fmt: skip
            answer = nobody.request(method, path, json={"command": "ls", "minutes": 5, "note": "", "input": "x"})
            assert answer.status_code == 401, (method, path)
    assert api.rows("select 1 from turns where session = %s", session) == []
    assert api.rows("select 1 from grants where session = %s", session) == []


def test_a_message_of_the_broker_says_nothing_of_anybody_and_moves_nothing_by_what_it_says(
    api: Api, worker: Ground, provider: Rehearsal
) -> None:
    client: Any = stream.connect(api.settings.redis_url)
    queue = QUEUES[TurnClass.CHILD]
    client.delete(queue)
    app = celery_app(api.settings.redis_url, connections=2)
    try:
        assert Doorbell(app).ring(TurnClass.CHILD)
        (raw,) = client.lrange(queue, 0, -1)
        message = json.loads(raw)
        assert json.loads(base64.b64decode(message["body"]))[:2] == [[], {}]
        anna, owen = api.person("anna"), api.person("owen", Role.APPROVER)
        provider.script([{"text": "I will", "tools": [STEERS]}, {"text": "over"}], session=(session := anna.session()))
        turn = anna.turn(session)
        app.send_task("nightshift.look", args=[str(owen.id), turn], kwargs={"principal": str(owen.id)}, queue=queue)
        worker.look()
        (row,) = api.rows("select requested_by from approvals where turn = %s", turn)
        assert row["requested_by"] == anna.id
    finally:
        client.delete(queue)
        app.close()


def test_a_run_on_a_thread_without_a_turn_reaches_no_rows(tmp_path: Path) -> None:
    answers: list[ToolResult] = []

    def run() -> None:
        bare = ToolContext("session", "turn", 1, 0, tmp_path, None, lambda: False, boottime() + 30)
        for name, given in (
            ("memory", '{"action":"add","scope":"me","text":"x"}'),
            ("session_search", '{"query":"x"}'),
        ):
            answers.append(dispatch.run_one(bare, name, given))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    assert [answer.is_error for answer in answers] == [True, True]


def test_code_of_no_session_has_no_tools(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        bare = ToolContext("session", "turn", 1, 0, tmp_path, None, lambda: False, boottime() + 30)
        reading = rpc.Reading(bare, rpc.NOTHING, ours)
        assert dict(reading.may.names) == {}
        assert reading.may.ask(reading.context, "read_file", '{"path":"a"}').is_error


def test_a_hook_has_no_word_that_approves() -> None:
    said = {name for name, one in vars(hooks).items() if isinstance(one, type) and one.__module__ == hooks.__name__}
    assert said == {"Call", "Result", "Deny"}
    assert {one.name for one in dataclasses.fields(hooks.Deny)} == {"why"}
    assert get_type_hints(hooks.Deny)["why"] is str


@pytest.mark.parametrize(
    ("table", "column"), [("turns", "requested_by"), ("sessions", "owner"), ("jobs", "principal"), ("inbox", "author")]
)
def test_a_turn_or_a_job_of_nobody_cannot_be_written(api: Api, table: str, column: str) -> None:
    anna = api.person("anna")
    anna.turn(anna.session())
    anna.post("/v1/jobs", {"name": f"of nobody {uuid4()}", "cron": "0 2 * * *", "prompt": "x"})
    with pytest.raises(psycopg.errors.NotNullViolation):
        api.execute(f"update {table} set {column} = null")  # noqa: S608 - names of this test


@pytest.mark.parametrize("change", ["digest = 'of other arguments', status = 'approved'", "status = 'void'"])
def test_what_was_approved_for_other_arguments_is_not_run(
    api: Api, worker: Ground, provider: Rehearsal, change: str
) -> None:
    anna = api.person("anna")
    provider.script([{"text": "I will", "tools": [STEERS]}, {"text": "over"}], session=(session := anna.session()))
    turn = UUID(anna.turn(session))
    worker.look()
    api.execute(f"update approvals set {change} where turn = %s", turn)  # noqa: S608 - words of this test
    api.execute(
        "update turns set status = 'queued', parked_on = null, parked_at = null, wake_at = null where id = %s", turn
    )
    worker.look()
    (run,) = api.rows("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "denied"
    assert "no longer valid" in run["result"]
    (place,) = api.rows("select workspace from sessions where id = %s", session)
    assert not (Path(place["workspace"]) / "AGENTS.md").exists()

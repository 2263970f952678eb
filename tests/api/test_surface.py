"""What the API says of itself: health, figures, its document, its page; and the test clock."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Generator
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from deploy.local.servers import Servers
from shared.values import Role
from tests.api.conftest import fresh_database
from tests.api.hand import Hand
from tests.api.serving import Api, Person, serving, settings_for

CONTRACT = {
    ("post", "/v1/sessions"), ("get", "/v1/sessions"), ("get", "/v1/sessions/{session}"),
    ("post", "/v1/sessions/{session}/turns"), ("get", "/v1/turns/{turn}"), ("get", "/v1/turns/{turn}/events"),
    ("post", "/v1/turns/{turn}/steer"), ("post", "/v1/turns/{turn}/cancel"),
    ("post", "/v1/sessions/{session}/rewind"), ("post", "/v1/sessions/{session}/restore"),
    ("post", "/v1/sessions/{session}/compact"), ("get", "/v1/sessions/{session}/requests/{request}"),
    ("get", "/v1/sessions/{session}/context"), ("get", "/v1/sessions/{session}/reductions"),
    ("get", "/v1/sessions/{session}/messages"), ("get", "/v1/turns/{turn}/calls"), ("get", "/v1/turns/{turn}/replay"),
    ("get", "/v1/approvals"), ("get", "/v1/jobs"), ("post", "/v1/jobs"), ("get", "/v1/jobs/{job}"),
    ("patch", "/v1/jobs/{job}"), ("delete", "/v1/jobs/{job}"), ("post", "/v1/jobs/{job}/run"),
    ("get", "/v1/jobs/{job}/runs"), ("get", "/v1/jobs/{job}/explain"), ("get", "/v1/ledger"), ("get", "/healthz"),
    ("get", "/readyz"), ("get", "/metrics"),
}  # fmt: skip


def _alive(api: Api) -> UUID:
    boot = uuid4()
    api.execute(
        "insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until)"
        " values (%s, 'worker', 'h', 1, 1, '', %s, clock_timestamp() + interval '1 hour')",
        boot,
        boot.int & 0x7FFF_FFFF_FFFF_FFFF,
    )
    return boot


def test_health_needs_no_token_and_readiness_needs_a_worker(api: Api) -> None:
    assert httpx.get(f"{api.url}/healthz").json() == {"status": "ok"}
    none = httpx.get(f"{api.url}/readyz")
    assert (none.status_code, none.json()) == (503, {"ready": False, "database": True, "broker": True, "workers": 0})
    boot = _alive(api)
    try:
        one = httpx.get(f"{api.url}/readyz")
        assert (one.status_code, one.json()["workers"]) == (200, 1)
    finally:
        api.execute("update workers set stopped_at = clock_timestamp() where boot_id = %s", boot)


def test_metrics_tell_what_the_schedulers_counted(api: Api) -> None:
    def told() -> dict[str, float]:
        time.sleep(2.1)  # the figures are remembered for two seconds
        text = httpx.get(f"{api.url}/metrics").text
        found = re.findall(
            r"^(nightshift_(?:wake_missed|takeovers|locked_rows_skipped|scheduler_ev)\S*) (\S+)$", text, re.MULTILINE
        )
        return {name: float(value) for name, value in found}

    zero = {f"nightshift_{name}_total": 0.0 for name in ("wake_missed", "takeovers", "locked_rows_skipped")}
    assert told() == zero
    one, two = uuid4(), uuid4()
    for boot, name, value in (
        (one, "wake_missed", 2), (two, "wake_missed", 1), (one, "turn.taken_over", 5), (one, "takeover.locked", 3),
        (two, "wake.locked", 4),
    ):  # fmt: skip
        api.execute("insert into counters (boot, name, value) values (%s, %s, %s)", boot, name, value)
    assert told() == {
        "nightshift_wake_missed_total": 3, "nightshift_takeovers_total": 5, "nightshift_locked_rows_skipped_total": 7,
        'nightshift_scheduler_events_total{event="wake_missed"}': 3,
        'nightshift_scheduler_events_total{event="turn.taken_over"}': 5,
        'nightshift_scheduler_events_total{event="takeover.locked"}': 3,
        'nightshift_scheduler_events_total{event="wake.locked"}': 4,
    }  # fmt: skip


def test_metrics_tell_the_queue_the_turns_and_the_viewers(api: Api, anna: Person, hand: Hand) -> None:
    turn = anna.turn(anna.session())
    anna.turn(anna.session())
    hand.claim(turn)

    def value(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", httpx.get(f"{api.url}/metrics").text, re.MULTILINE)
        assert found is not None, name
        return float(found.group(1))

    with anna.http.stream("GET", f"/v1/turns/{turn}/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        assert value("nightshift_viewers") == 1
    time.sleep(2.1)  # the figures are remembered for two seconds
    (row,) = api.rows(
        "select count(*) filter (where status = 'queued') as queued,"
        " count(*) filter (where status = 'running') as running from turns"
    )
    assert value('nightshift_queued_turns{class="interactive"}') == row["queued"]
    assert value('nightshift_turns{status="running"}') == row["running"]
    assert value('nightshift_oldest_waiting_seconds{class="interactive"}') > 0
    assert value("nightshift_database_up") == 1
    assert value("nightshift_doorbell_rung_total") >= 2
    assert value('nightshift_calls{purpose="main",status="settled"}') == 0


def test_the_document_names_every_call_of_the_contract_its_errors_and_how_to_sign_in(api: Api) -> None:
    document: dict[str, Any] = httpx.get(f"{api.url}/openapi.json").json()
    found = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert found >= CONTRACT
    assert "HTTPBearer" in document["components"]["securitySchemes"]
    for method, path in sorted(CONTRACT):
        operation = document["paths"][path][method]
        if path.startswith("/v1/"):
            assert operation["security"] == [{"HTTPBearer": []}], path
            assert "application/problem+json" in operation["responses"]["default"]["content"], path
        if method == "post":
            assert "Idempotency-Key" in [one["name"] for one in operation["parameters"]], path
    assert _references(document) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def _references(document: Any) -> set[str]:
    return set(re.findall(r'"\$ref":\s*"([^"]+)"', json.dumps(document)))


def test_the_page_needs_nothing_from_elsewhere(api: Api) -> None:
    page = httpx.get(f"{api.url}/", follow_redirects=True)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "/v1/sessions/{session}/turns" in page.text
    assert "http" not in re.sub(r"HTTP\w*", "", page.text).replace("https-equiv", "")
    assert "<script" not in page.text


def test_without_the_setting_there_is_no_test_clock(admin: Person) -> None:
    answer = admin.post("/v1/test/clock", {"advance_s": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.fixture
def clocked(servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Api]:
    home = tmp_path_factory.mktemp("home")
    with fresh_database(servers, template) as url:
        settings = settings_for(url, servers.valkey.url, home, test_clock=True)
        with serving(settings) as running:
            yield running


def test_the_clock_answers_when_it_has_arrived_and_a_repeated_call_moves_it_once(clocked: Api) -> None:
    admin, anna = clocked.person("admin", Role.ADMIN), clocked.person("anna")
    assert anna.post("/v1/test/clock", {"advance_s": 1}).status_code == 403
    assert admin.post("/v1/test/clock", {"advance_s": -1}).json()["code"] == "input_invalid"
    stop = threading.Event()

    def scheduler() -> None:
        with psycopg.connect(clocked.settings.database_url, autocommit=True) as connection:
            while not stop.wait(0.02):
                connection.execute("update test_clock set offset_s = least(offset_s + 30, target_s)")

    thread = threading.Thread(target=scheduler)
    thread.start()
    try:
        answers = [admin.post("/v1/test/clock", {"advance_s": 100}, key="k").json() for _ in range(2)]
        assert [(one["offset_s"], one["target_s"]) for one in answers] == [(100.0, 100.0)] * 2
        admin.post("/v1/test/clock", {"advance_s": 50, "jump": True})
    finally:
        stop.set()
        thread.join()
    (row,) = clocked.rows("select target_s, jump from test_clock")
    assert row == {"target_s": 150.0, "jump": True}

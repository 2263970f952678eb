"""A turn's figures, as Prometheus reads them from a worker and as a collector gets them; and no word of the turn."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import urllib.request
from collections.abc import Generator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest

from deploy.drill.rig import until
from shared.errors import SettingsError
from shared.telemetry import otel
from shared.telemetry.events import TurnLeft
from shared.values import TurnClass, TurnStatus
from tests.ground import Ground, Rehearsal
from tests.loop.conftest import worker
from workers import telling

__all__ = ["worker"]
WORDS = "the-words-of-this-turn"


@contextlib.contextmanager
def collector() -> Generator[tuple[str, list[bytes]]]:
    came: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append(body if self.path == "/v1/metrics" else b"")
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", came
    finally:
        server.shutdown()
        server.server_close()


def test_a_turn_is_told_in_figures_and_in_no_words(worker: Ground, provider: Rehearsal) -> None:
    with collector() as (endpoint, came):
        settings = worker.settings.model_copy(update={"metrics_listen": "127.0.0.1:0", "otlp_endpoint": endpoint})
        telemetry, end = telling.begin(settings, uuid4())
        worker.ports = replace(worker.ports, telemetry=telemetry)
        session = worker.session()
        todo = {"name": "todo", "input": {"items": [{"text": WORDS, "done": False}]}}
        odd: dict[str, Any] = {"name": f"no_{WORDS}", "input": {}}
        provider.script([{"text": WORDS, "tools": [todo, odd]}, {"text": WORDS}], session=str(session))
        worker.turn(session, WORDS)
        worker.look()
        prometheus: Any = telemetry._feeds[0]._subscriber
        port = prometheus._server.server_address[1]

        def told() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return answer.read().decode()

        until(lambda: 'nightshift_turns_left_total{class="interactive",status="done"} 1.0' in told(), 10, "the turn")
        text = told()
        assert 'nightshift_tool_runs_total{status="done",tool="todo"} 1.0' in text
        assert 'nightshift_tool_runs_total{status="failed",tool="other"} 1.0' in text
        assert 'nightshift_model_calls_total{purpose="main",status="settled"} 2.0' in text
        assert 'nightshift_first_token_seconds_count{purpose="main"} 2.0' in text
        end()
    sent = b"".join(came)
    for figure in (b"nightshift_tool_runs", b"nightshift_model_tokens", b"nightshift_turn_seconds"):
        assert figure in sent
    for words in (WORDS.encode(), str(session).encode()):
        assert words not in sent
        assert words not in text.encode()


def test_a_wrong_address_stops_the_start_and_a_taken_one_does_not(worker: Ground) -> None:
    with pytest.raises(SettingsError, match="NIGHTSHIFT_METRICS_LISTEN"):
        telling.begin(worker.settings.model_copy(update={"metrics_listen": "nowhere"}), uuid4())
    with collector() as (endpoint, _):
        taken = worker.settings.model_copy(update={"metrics_listen": endpoint.removeprefix("http://")})
        telemetry, end = telling.begin(taken, uuid4())
        assert telemetry.failures == 0
        end()


def test_a_collector_that_is_not_there_costs_nothing_but_its_figures(worker: Ground) -> None:
    settings = worker.settings.model_copy(update={"otlp_endpoint": "http://127.0.0.1:9"})
    telemetry, end = telling.begin(settings, uuid4())
    end()
    assert telemetry.dropped == 0


def test_a_collector_that_never_answers_keeps_nobody_from_counting(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "_TIMEOUT_S", 1)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:  # takes connections and says nothing
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = worker.settings.model_copy(update={"metrics_listen": "127.0.0.1:0", "otlp_endpoint": endpoint})
        telemetry, end = telling.begin(settings, uuid4())
        prometheus: Any = telemetry._feeds[0]._subscriber
        for _ in range(3):
            telemetry.emit(TurnLeft(uuid4(), uuid4(), TurnClass.JOB, TurnStatus.DONE, 1, 0.5))
        port = prometheus._server.server_address[1]

        def told() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return answer.read().decode()

        until(lambda: 'nightshift_turns_left_total{class="job",status="done"} 3.0' in told(), 10, "what was counted")
        end()
    assert (telemetry.dropped, telemetry.failures) == (0, 0)


def test_without_its_packages_opentelemetry_says_what_to_install(
    worker: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    with pytest.raises(SettingsError, match=r"install nightshift\[telemetry\]"):
        telling.begin(worker.settings.model_copy(update={"otlp_endpoint": "http://127.0.0.1:9"}), uuid4())

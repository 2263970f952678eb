"""A small HTTP server that answers as contract.md says, from rows and events that a test puts into it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "token-of-the-test"
Row = dict[str, Any]


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class Turn:
    """A turn whose events a test sends one by one; a viewer waits for the next without polling."""

    id: str
    session: str
    row: Row
    events: list[tuple[str, str, Row]] = field(default_factory=list[tuple[str, str, Row]])
    changed: threading.Condition = field(default_factory=threading.Condition)
    cut_after: list[int] = field(default_factory=list[int])
    """Each connection in turn breaks off after so many events."""
    connections: list[str | None] = field(default_factory=list[str | None])
    """The Last-Event-ID of each connection."""

    def send(self, kind: str, *, at: tuple[int, int], **data: object) -> None:
        step, fence = at
        n = sum(1 for id_, *_ in self.events if id_.split(".")[1] == str(fence)) + 1
        self.send_as(f"{step}.{fence}.{n}", kind, **data)

    def send_as(self, id_: str, kind: str, **data: object) -> None:
        with self.changed:
            self.events.append((id_, kind, dict(data)))
            self.changed.notify_all()

    def finish(self, status: str = "done", answer: str | None = None, error: Row | None = None, fence: int = 1) -> None:
        self.row |= {"status": status, "answer": answer, "error": error}
        self.send("turn.finished", at=(9, fence), status=status, answer=answer, error=error)


def _nothing(*_: object) -> None:
    return


class Surface:
    """The server. `turns` and `sessions` are what it knows; `asked` is what it was sent."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.sessions: dict[str, Row] = {}
        self.messages: dict[str, list[Row]] = {}
        self.children: dict[str, list[Row]] = {}
        self.turns: dict[str, Turn] = {}
        self.lists: dict[str, list[Row]] = {"jobs": [], "approvals": [], "ledger": []}
        self.total: Row = {}
        self.switch: Row = {}
        self.runs: list[Row] = []
        self.replies: dict[str, str] = {}
        self.artifacts: dict[str, bytes] = {}
        """By path; read in pages."""
        self.on_turn: Callable[[Turn], None] = _nothing
        self.on_steer: Callable[[Turn, str], None] = _nothing
        self.steer_is = "steered"
        self.on_cancel: Callable[[Turn], None] = _nothing
        self.on_decision: Callable[[Row], None] = _nothing
        self.refusals: list[tuple[int, Row | bytes, dict[str, str]]] = []
        """Answers given instead of the right ones, first come first served."""
        self.happened = threading.Condition()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def note(self, asked: Asked) -> None:
        with self.happened:
            self.asked.append(asked)
            self.happened.notify_all()

    def wait_for(self, method: str, pattern: str, count: int = 1, timeout: float = 20.0) -> Asked:
        """The count-th request of that kind, once it has come."""

        def found() -> list[Asked]:
            return [a for a in self.asked if a.method == method and re.fullmatch(pattern, a.path)]

        with self.happened:
            assert self.happened.wait_for(lambda: len(found()) >= count, timeout), f"no {method} {pattern} came"
            return found()[count - 1]

    def add_turn(self, session: str = "s-1") -> Turn:
        id_ = f"t-{len(self.turns) + 1}"
        row: Row = {"id": id_, "session_id": session, "status": "queued", "parked_on": None, "answer": None}
        row |= {
            "error": None,
            "cost_usd": "0.0123",
            "tokens": {"input": 10, "output": 5, "cache_read": 1, "cache_write": 2},
        }
        self.turns[id_] = Turn(id_, session, row)
        return self.turns[id_]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        match (asked.method, *asked.path.strip("/").split("/")[1:]):
            case ("POST", "sessions"):
                id_ = f"s-{len(self.sessions) + 1}"
                self.sessions[id_] = {"id": id_, "model": "m-1", "status": "idle", **asked.body}
                return 201, self.sessions[id_]
            case ("GET", "sessions"):
                return 200, self.page(list(self.sessions.values()), asked)
            case ("GET", "sessions", id_) if id_ in self.sessions:
                return 200, self.sessions[id_]
            case ("GET", "sessions", id_, "children"):
                return 200, self.page(self.children.get(id_, []), asked)
            case ("GET", "sessions", id_, "messages"):
                return 200, self.page(self.messages.get(id_, []), asked)
            case ("POST", "sessions", id_, "turns"):
                turn = self.add_turn(id_)
                self.on_turn(turn)
                return 202, {"turn": dict(turn.row), "events": f"/v1/turns/{turn.id}/events"}
            case ("GET", "turns", id_) if id_ in self.turns:
                return 200, self.turns[id_].row
            case ("PATCH", "turns" | "sessions", id_):
                row = self.turns[id_].row if id_ in self.turns else self.sessions[id_]
                row |= asked.body
                return 200, row
            case ("GET", "sessions", id_, "switch") if id_ in self.sessions:
                return 200, self.switch
            case ("POST", "turns", id_, "steer") if id_ in self.turns:
                self.on_steer(self.turns[id_], asked.body["input"])
                return 202, {"turn": self.turns[id_].row, "how": self.steer_is}
            case ("POST", "turns", id_, "cancel") if id_ in self.turns:
                self.on_cancel(self.turns[id_])
                return 202, {"turn": self.turns[id_].row}
            case ("POST", "approvals", id_):
                found = next((row for row in self.lists["approvals"] if row["id"] == id_), None)
                if found is None:
                    return 404, {"code": "not_found", "detail": "no such thing, or not yours to see"}
                if found["status"] != "pending":
                    return 409, {"code": "already_decided", "detail": "ben denied it already: a decision stands"}
                found["status"] = {"approve": "approved", "deny": "denied"}[asked.body["decision"]]
                self.on_decision(found)
                return 200, found
            case ("GET", "ledger"):
                return 200, {"items": self.lists["ledger"], "next": None, "total": self.total}
            case ("GET", ("approvals" | "jobs") as name):
                return 200, self.page(self.lists[name], asked)
            case ("POST", "jobs"):
                job = {"id": "0199f000-0000-7000-8000-000000000001", "zone": "UTC", **asked.body}
                self.lists["jobs"].append(job)
                return 201, job
            case ("PATCH", "jobs", _):
                self.lists["jobs"][0] |= asked.body
                return 200, self.lists["jobs"][0]
            case ("GET", "jobs", _, "runs"):
                return 200, self.page(self.runs, asked)
            case _:
                return 404, {"code": "not_found", "detail": "no such thing, or not yours to see"}

    @staticmethod
    def page(rows: list[Row], asked: Asked) -> Row:
        start = int(asked.query.get("cursor", "0"))
        size = min(int(asked.query.get("limit", "50")), 50)
        following = start + size
        return {"items": rows[start:following], "next": str(following) if following < len(rows) else None}


def _handler(surface: Surface) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's word
            pass

        def do_GET(self) -> None:
            self._handle()

        def do_POST(self) -> None:
            self._handle()

        def do_PATCH(self) -> None:
            self._handle()

        def do_PUT(self) -> None:
            self._handle()

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), body, headers)
            surface.note(asked)
            if surface.refusals:
                status, problem, more = surface.refusals.pop(0)
                if status == 0:
                    self.connection.close()
                    self.close_connection = True
                    return
                self._reply(status, problem if isinstance(problem, bytes) else json.dumps(problem).encode(), more)
                return
            if headers.get("authorization") != f"Bearer {TOKEN}":
                problem = {"code": "token_invalid", "detail": "this token is not accepted"}
                self._reply(401, json.dumps(problem).encode(), {})
                return
            if parts.path.endswith("/events"):
                self._stream(surface.turns[parts.path.split("/")[3]], headers.get("last-event-id"))
                return
            if parts.path in surface.replies:
                self._reply(200, surface.replies[parts.path].encode("utf-8", "surrogatepass"), {})
                return
            if parts.path in surface.artifacts:
                whole, start = surface.artifacts[parts.path], int(asked.query["offset"])
                page = whole[start : start + int(asked.query["limit"])]
                self._reply(200, page, {"x-nightshift-size": str(len(whole))})
                return
            status, answer = surface.answer(asked)
            self._reply(status, json.dumps(answer).encode(), {})

        def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, turn: Turn, last_id: str | None) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.flush()
            self.close_connection = True
            with turn.changed:
                turn.connections.append(last_id)
                turn.changed.notify_all()
                left = turn.cut_after.pop(0) if turn.cut_after else -1
            self._events(turn, last_id, left)

        def _events(self, turn: Turn, last_id: str | None, left: int) -> None:
            ids = [id_ for id_, *_ in turn.events]
            at = ids.index(last_id) + 1 if last_id in ids else 0
            while left != 0:
                with turn.changed:
                    while len(turn.events) <= at:
                        if not turn.changed.wait(30):
                            return
                    id_, kind, data = turn.events[at]
                at, left = at + 1, left - 1
                text = json.dumps(data, ensure_ascii=False)
                self.wfile.write(f": ping\r\nevent: {kind}\r\nid: {id_}\r\ndata: {text}\r\n\r\n".encode())
                self.wfile.flush()
                if kind == "turn.finished":
                    return

    return Handler


@contextmanager
def serving() -> Generator[Surface]:
    surface = Surface()
    thread = threading.Thread(target=surface.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield surface
    finally:
        surface.server.shutdown()
        surface.server.server_close()

"""Plays plans through the real stack: API, worker, Postgres, the rehearsal over HTTP; many sessions on one clock.

Between two moments at which anybody speaks the clock is moved, for the database and the provider alike; at each moment
the turns that are due are sent and waited for. Bodies are taken from the capture as they come and deleted: a day of
them is half a gigabyte.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import httpx
import psycopg
from psycopg.rows import dict_row

from deploy.drill.rig import Rig, Row
from shared.doorbell import Doorbell, celery_app
from shared.request import blocks
from shared.store import intake
from shared.values import OnBusy, TurnClass
from tests.bench.day.bill import Book, Call
from tests.bench.day.plan import Fact, Plan, Turn
from tests.bench.house import House

PATIENCE_S = 120.0
GRID_S = 5.0
SLOTS = 32
INDEX_S = 120.0
CLOCK_STEP_S = 600.0

LEFT_OUT = """
select (select count(*) from artifacts where session = %s and cause = 'tool_result') as kept,
  (select count(*) from messages where session = %s and author = 'tool'
    and content like '%% more characters left out]"%%') as cut
"""


@dataclass(slots=True)
class Run:
    """One conversation: a plan, and how it is to be played."""

    plan: Plan
    model: str
    keep_warm: bool = False
    session: str = ""
    turns: list[str] = field(default_factory=list[str])
    calls: list[Call] = field(default_factory=list[Call])
    """All that reached the provider and were billed, in order; each with its ledger's and its row's facts."""
    results: dict[str, str] = field(default_factory=dict[str, str])
    rows: list[Row] = field(default_factory=list[Row])
    """Its turns."""
    runs: list[Row] = field(default_factory=list[Row])
    edits: list[Row] = field(default_factory=list[Row])
    kept: int = 0
    """Results of which the transcript holds a preview, the whole being an artifact."""
    cut: int = 0
    """Results of which a part is nowhere."""
    reductions: list[Row] = field(default_factory=list[Row])

    @property
    def main(self) -> list[Call]:
        """The conversation's own calls: no summary, no ping, none that ended a turn without tools."""
        return [one for one in self.calls if one.facts.get("purpose") == "main"]

    @property
    def failed(self) -> list[Row]:
        return [row for row in self.rows if row["status"] != "done"]


@contextmanager
def staged(house: House, windows: Mapping[str, int]) -> Generator[Stage]:
    """Workers and a provider for which these models hold so many tokens, and nothing captured or cached before."""
    program = ("tests.bench.day.worker", *(f"{model}={tokens}" for model, tokens in windows.items()))
    house.reset()
    with (
        tempfile.TemporaryDirectory() as folder,
        house.workers(1, SLOTS, program=program),
        Stage(house.rig, Path(folder), windows) as stage,
    ):
        yield stage


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question. `calls`: how many more than the one that saw it; `tools`: by which. `by_line`: a stub
    keeps the value in the one line of a result that it shows, so the fact may have been answered from that alone."""

    fact: Fact
    right: bool
    calls: int
    tools: tuple[str, ...]
    by_line: bool
    told: str
    """The end of what the last of them gave."""


class Stage:
    """A running stack, its provider's control surface, and what was captured so far."""

    def __init__(self, rig: Rig, capture: Path, windows: Mapping[str, int] | None = None) -> None:
        self.rig, self.capture, self.book = rig, capture, Book()
        self.control = httpx.Client(
            base_url=f"{rig.provider.url}/rehearsal/", headers=rig.provider.headers, timeout=120
        )
        self.database = psycopg.connect(rig.facts["database_url"], autocommit=True)
        self.bell = Doorbell(celery_app(rig.facts["redis_url"]))
        self.admin: UUID = self.rows("select id from principals where role = 'admin' order by created_at limit 1")[0][
            "id"
        ]
        self._people: list[httpx.Client] = [rig.http]
        self.control.post("capture", json={"directory": str(capture)}).raise_for_status()
        for model, context in (windows or {}).items():
            self.control.post("window", json={"model": model, "context": context}).raise_for_status()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.control.post("capture", json={"directory": None}).raise_for_status()
        self.control.close()
        self.database.close()
        for one in self._people[1:]:
            one.close()

    def rows(self, query: str, *params: Any) -> list[Row]:
        return self.database.cursor(row_factory=dict_row).execute(query.encode(), params).fetchall()

    # --- the clock ----------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return float(self.rows("select extract(epoch from clock_now()) as now")[0]["now"])

    def move_to(self, at: float, *, in_steps: bool) -> None:
        """Let time pass until then; `in_steps` leaves it to the scheduler, which does in between what falls due."""
        while (left := at - self.now()) > 0.05:
            if in_steps:
                step = min(left, CLOCK_STEP_S)
                answer = self.rig.http.post("/v1/test/clock", json={"advance_s": step}, timeout=900)
                answer.raise_for_status()
                continue
            (row,) = self.rows(
                "update test_clock set offset_s = offset_s + %s, target_s = offset_s + %s returning offset_s",
                left,
                left,
            )
            self.control.post("clock", json={"offset_s": row["offset_s"]}).raise_for_status()

    # --- a conversation -----------------------------------------------------------------------------------------------

    def open(self, run: Run) -> None:
        """Its session, with the files that its tools will read."""
        people = max(turn.speaker for turn in run.plan.turns) + 1
        while len(self._people) < people:
            self._people.append(self._person(f"reader {len(self._people)}"))
        audience = {"audience": "team"} if people > 1 else {}
        run.session = self.rig.session(model=run.model, title=f"{run.plan.name} {run.plan.seed}", **audience)
        (row,) = self.rows("select workspace from sessions where id = %s", run.session)
        for path, text in run.plan.files.items():
            file = Path(row["workspace"]) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        if run.keep_warm:
            self.rows("update sessions set keep_warm = true where id = %s returning id", run.session)

    def _person(self, name: str) -> httpx.Client:
        known = self.rows("select id::text as id from principals where name = %s", name)
        made = known[0] if known else self.rig.http.post("/v1/people", json={"name": name}).raise_for_status().json()
        token = self.rig.http.post("/v1/tokens", json={"person": made["id"]}).raise_for_status().json()["token"]
        return httpx.Client(base_url=self.rig.facts["url"], headers={"Authorization": f"Bearer {token}"}, timeout=15)

    def send(self, run: Run, turn: Turn) -> str:
        """One turn, its replies told to the provider first."""
        if turn.asks:
            self._let_index(run)
        script = {"policy": "recall"} if turn.asks else {"replies": _replies(turn)}
        self.control.post("script", json={"session": run.session, **script}).raise_for_status()
        if turn.scaffold:
            sent = self._built(run, turn)
        else:
            answer = self._people[turn.speaker].post(f"/v1/sessions/{run.session}/turns", json={"input": turn.text})
            sent = str(answer.raise_for_status().json()["turn"]["id"])
        run.turns.append(sent)
        return sent

    def _built(self, run: Run, turn: Turn) -> str:
        """A machine-built message: its builder says where what never changes ends."""
        new = intake.NewTurn(
            UUID(run.session), self.admin, TurnClass.INTERACTIVE, blocks.join([blocks.text(turn.text)]),
            deadline_s=7_200, max_steps=90, stable_prefix_len=turn.scaffold,
        )  # fmt: skip
        with self.database.transaction():
            admitted = intake.admit(self.database, new, on_busy=OnBusy.QUEUE, queue_bound=100)
        self.bell.ring(TurnClass.INTERACTIVE)
        return str(admitted.turn)

    def _let_index(self, run: Run) -> None:
        """What was said is searchable seconds later, and here hours pass in less: the question waits that long. Asked
        before that, it would tell of the machine's load and not of what a search finds."""
        query = """
select not exists (
  select 1 from messages m where m.session = %s and not exists (select 1 from message_search x where x.message = m.id)
) as all_found
"""
        end = time.monotonic() + INDEX_S
        while not self.rows(query, run.session)[0]["all_found"]:
            if time.monotonic() > end:
                raise AssertionError(f"what was said is not to be found after {INDEX_S} s")
            self.bell.chore("index")
            time.sleep(0.1)

    def wait(self, turns: Sequence[str]) -> None:
        end = time.monotonic() + PATIENCE_S
        query = "select count(*) as left from turns where id = any(%s::uuid[]) and finished_at is null"
        while self.rows(query, list(turns))[0]["left"]:
            if time.monotonic() > end:
                open_turns = self.rows("select * from turns where id = any(%s::uuid[])", list(turns))
                raise AssertionError(f"turns did not end within {PATIENCE_S} s: {open_turns}")
            time.sleep(0.01)

    def take(self) -> None:
        """Read and delete what was captured meanwhile."""
        for path in sorted(self.capture.glob("[0-9]*.json")):
            index, _, session = path.stem.partition("-")
            self.book.read(int(index), session, path.read_bytes())
            path.unlink()

    def play(self, runs: Sequence[Run]) -> None:
        """All of them, each on its own times, from now on."""
        for run in runs:
            self.open(run)
        start = self.now()
        events = sorted(
            (round(turn.at_s / GRID_S) * GRID_S, number, at, run, turn)
            for number, run in enumerate(runs)
            for at, turn in enumerate(run.plan.turns)
        )
        in_steps = any(run.keep_warm for run in runs)
        for at_s, group in groupby(events, key=lambda event: event[0]):
            self.move_to(start + at_s, in_steps=in_steps)
            self._moment([(run, turn) for *_, run, turn in group])
        self._gather(runs)

    def _moment(self, due: list[tuple[Run, Turn]]) -> None:
        """A session's second turn of the same moment comes after its first has ended."""
        while due:
            first: dict[int, tuple[Run, Turn]] = {}
            later: list[tuple[Run, Turn]] = []
            for run, turn in due:
                if id(run) in first:
                    later.append((run, turn))
                else:
                    first[id(run)] = (run, turn)
            self.wait([self.send(run, turn) for run, turn in first.values()])
            self.take()
            due = later

    # --- what came of it ----------------------------------------------------------------------------------------------

    def _gather(self, runs: Sequence[Run]) -> None:
        query = """
select id, turn, purpose, status, request_id, cost_usd, last_edit, last_message, estimate, step, seq
from calls where session = any(%s::uuid[])
"""
        calls = {row["request_id"]: row for row in self.rows(query, [run.session for run in runs])}
        for run in runs:
            ledger = self.control.get("ledger", params={"session": run.session}).raise_for_status().json()["calls"]
            for row in ledger:
                call = self.book.calls.get(row["index"])
                if call is None or row["usd"] is None:
                    continue
                known = calls.get(row["request_id"], {})
                call.facts |= row | {name: known.get(name) for name in known if name not in ("status", "id")}
                call.facts |= {"call": known.get("id"), "booked": known.get("status"), "purpose": known.get("purpose")}
                run.calls.append(call)
            run.results = self._results(run)
            run.rows = self.rows("select * from turns where id = any(%s::uuid[]) order by seq", run.turns)
            run.runs = self.rows(
                "select turn, step, ordinal, tool, status, right(result, 80) as told from tool_runs where session = %s",
                run.session,
            )
            run.edits = self.rows(
                "select id, kind, first, last, block, text from edits where session = %s order by id", run.session
            )
            (found,) = self.rows(LEFT_OUT, run.session, run.session)
            run.kept, run.cut = found["kept"], found["cut"]
            run.reductions = self.rows("select * from reductions where session = %s order by id", run.session)

    def _results(self, run: Run) -> dict[str, str]:
        """What the tools gave, by the id of the call: as stored, which no edit touches."""
        found: dict[str, str] = {}
        for row in self.rows("select content from messages where session = %s and role = 'user'", run.session):
            for block in json.loads(row["content"]):
                if block["type"] == "tool_result" and isinstance(block["content"], str):
                    found[block["tool_use_id"]] = block["content"]
        return found

    def replays(self, run: Run) -> tuple[int, list[int]]:
        """How many calls there are, and the captured ones that `replay` did not rebuild byte for byte."""
        wrong: list[int] = []
        for call in run.calls:
            answer = self.rig.http.get(
                f"/v1/turns/{call.facts['turn']}/replay", params={"call": str(call.facts["call"])}, timeout=60
            )
            same = answer.status_code == 200 and Book().read(0, "", answer.content).sha256 == call.sha256
            if not same or answer.headers.get("x-nightshift-agrees") != "true":
                wrong.append(call.index)
        return len(run.calls), wrong


def broken(run: Run) -> list[int]:
    """Calls of the conversation that do not extend the one before, though no edit came between."""
    found: list[int] = []
    for before, call in zip(run.main, run.main[1:], strict=False):
        same_epoch = before.facts["last_edit"] == call.facts["last_edit"]
        if same_epoch and call.path[: len(before.path)] != before.path:
            found.append(call.index)
    return found


def _replies(turn: Turn) -> list[Row]:
    replies: list[Row] = [
        {
            "text": step.text, "thinking": step.thinking,
            "tools": [{"name": wish.tool, "input": wish.input} for wish in step.wishes],
        }
        for step in turn.steps
    ]  # fmt: skip
    return [*replies, {"text": turn.answer, "thinking": turn.answer[:200]}]


def answers(run: Run) -> list[Answer]:
    """Of every question that was asked."""
    by_id = {str(row["id"]): row for row in run.rows}
    found: list[Answer] = []
    for turn, sent in zip(run.plan.turns, run.turns, strict=True):
        if turn.asks is None:
            continue
        row = by_id[sent]
        made = sorted(_of(run.runs, sent), key=lambda one: (one["step"], one["ordinal"]))
        right = turn.asks.value in (row["answer"] or "")
        tools, told = tuple(one["tool"] for one in made), (made[-1]["told"] or "") if made else ""
        found.append(Answer(turn.asks, right, len(tools), tools, _by_line(run, turn.asks, sent), told))
    return found


def _by_line(run: Run, fact: Fact, turn: str) -> bool:
    """Of a fact that nobody but a result has said. Its plan has each file read once, or again after it was cut."""
    seen = [one.facts["last_edit"] or 0 for one in run.main if str(one.facts["turn"]) == turn]
    lines = [one["text"] or "" for one in run.edits if one["kind"] == "stub" and seen and one["id"] <= seen[0]]
    return fact.where == "result" and any(fact.value in line for line in lines)


def _of(runs: Iterable[Row], turn: str) -> list[Row]:
    return [one for one in runs if str(one["turn"]) == turn]

"""What happens around workers that live: a stop that is asked for, servers that go away, beats and schedulers that are
there twice, a COMMIT without a reply."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import psycopg

from deploy.drill import blows, load
from deploy.drill.figures import Figures, account
from deploy.drill.killing import WORKERS
from deploy.drill.load import Load
from deploy.drill.rig import Rig, slack, until
from deploy.drill.swallow import Loss, Proxy, swallowing
from deploy.drill.up import PROXY_FILE

POST_OUTAGE_S, LONG_OUTAGE_S = 5.0, 60.0
STOPPED_WITHIN_S = 30.0
_UNDER_WAY = 6


def terminated(rig: Rig, figures: Figures) -> None:
    """SIGTERM: it finishes its steps, hands its turns back and ends; nothing is unknown and no call is made again."""
    workers = rig.workers_ready(2, of_more=True)
    turns = load.effects(rig, _UNDER_WAY)
    pid = workers[0]["pid"]
    _begun(rig, turns)
    rig.kill(pid, signal.SIGTERM)
    began = time.monotonic()
    until(lambda: blows.gone(pid), STOPPED_WITHIN_S * slack(), "the end of a worker that was told to stop")
    figures.resumes.append(time.monotonic() - began)
    before = figures.billed_again
    account(rig, figures, turns)
    for _ in range(figures.billed_again - before):
        figures.wrong("lost", "a call was made again, though its worker had time")


def struck(rig: Rig, figures: Figures, *, blow: Callable[[Rig], object]) -> None:
    """Something around the workers is struck while turns are under way."""
    rig.workers_ready(2, of_more=True)
    turns = load.effects(rig, _UNDER_WAY - 2) + load.asked(rig) + load.delegating(rig)
    _begun(rig, turns)
    blow(rig)
    figures.resumes.append(blows.moving(rig, turns.turns))
    account(rig, figures, turns, seconds=90)


def unreachable(rig: Rig, figures: Figures, *, seconds: float) -> None:
    """The broker answers nobody: turns that are under way go on, and one that is posted meanwhile is started."""
    rig.workers_ready(2, of_more=True)
    turns = load.effects(rig, 2) + load.asked(rig) + load.delegating(rig)
    _begun(rig, turns)
    rig.freeze("valkey")
    began = time.monotonic()
    try:
        posted = load.effects(rig)
        time.sleep(max(0.0, began + seconds - time.monotonic()))
    finally:
        rig.thaw("valkey")
    figures.resumes.append(blows.moving(rig, posted.turns))
    account(rig, figures, turns + posted, seconds=90)


def twice(rig: Rig, figures: Figures) -> None:
    """A job comes due under two beats and two schedulers; the scheduler that has it in hand dies in the middle of the
    transaction that starts it, and so does a beat: it runs once."""
    until(lambda: len(rig.pids("scheduler")) == len(rig.pids("beat")) == 2, 30 * slack(), "two of each")
    name = load.job_script(rig)
    asked = {"name": name, "cron": "0 0 1 1 *", "prompt": f"have your effects, script:{name}"}
    job = rig.http.post("/v1/jobs", json=asked).raise_for_status().json()["id"]
    until(lambda: rig.rows("select 1 from jobs where id = %s and next_at is not null", job), 20 * slack(), "its plan")
    killed_at = _killed_in_its_tick(rig, job)
    query = "select turn::text from ticks where job = %s and turn is not null"
    until(lambda: rig.rows(query, job), 30 * slack(), "the tick")
    figures.resumes.append(time.time() - killed_at)
    time.sleep(1.5)  # long enough for another scheduler's timer
    turns = tuple(row["turn"] for row in rig.rows(query, job))
    if len(turns) != 1:
        figures.wrong("duplicated", f"{len(turns)} runs of one tick")
    account(rig, figures, Load(turns, len(turns) * load.STEPS * load.CALLS))
    rig.http.request("DELETE", f"/v1/jobs/{job}").raise_for_status()


_TICKING = """
select split_part(application_name, ' ', 2)::int as pid from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and position('insert into ticks' in query) > 0
"""


def _killed_in_its_tick(rig: Rig, job: str) -> float:
    """Let it come due while nobody can write a tick, kill the scheduler that waits for that with the job's row in hand,
    and one beat. When that was."""
    with psycopg.connect(rig.facts["database_url"]) as connection:
        connection.execute("set local idle_in_transaction_session_timeout = 0")
        connection.execute("lock table ticks in exclusive mode")
        rig.one("update jobs set next_at = date_trunc('year', clock_now()) where id = %s returning id", job)
        pid = until(lambda: rig.rows(_TICKING), 30 * slack(), "a scheduler in its tick")[0]["pid"]
        at = rig.kill(pid, signal.SIGKILL)
        rig.kill(rig.pids("beat")[0], signal.SIGKILL)
        until(lambda: blows.gone(pid), 10 * slack(), "the end of a scheduler that was killed")
        return at


def _begun(rig: Rig, turns: Load) -> None:
    """Until work is under way at every place: a step is recorded, more are not."""
    until(lambda: (now := blows.steps_done(rig, turns.turns)) and now["steps"] > 0, 30 * slack(), "a first step")


@dataclass(slots=True)
class Swallowing:
    """A proxy between the workers and Postgres, there from the first run of this point to its last."""

    open: ExitStack = field(default_factory=ExitStack)
    proxy: Proxy | None = None
    runs: int = 0

    def run(self, rig: Rig, figures: Figures) -> None:
        """The reply to one COMMIT is lost, another each run: of a turn's end, a run's result, first of a claim."""
        proxy = self.proxy or self._begin(rig)
        # A statement that a connection has prepared is not sent as text any more: after the first runs only what stands
        # in its values can be seen.
        claim, end, result = (b"pg_advisory_xact_lock", b"COMMIT"), (b"every effect was asked for", b"COMMIT"), (
            b"the effect happened",
        )  # fmt: skip
        which = claim if self.runs == 0 else (end, result)[self.runs % 2]
        self.runs += 1
        before = proxy.lost
        proxy.lose(which, Loss.REPLY)
        turns = load.effects(rig, 2)
        until(lambda: proxy.lost > before, 30 * slack(), "the COMMIT whose reply is lost")
        figures.resumes.append(blows.moving(rig, turns.turns))
        account(rig, figures, turns)

    def _begin(self, rig: Rig) -> Proxy:
        folder = rig.home / "proxy"
        folder.mkdir()
        self.proxy = self.open.enter_context(swallowing(rig.facts["database_url"], folder))
        flag = rig.home / PROXY_FILE
        flag.write_text(self.proxy.url, "utf-8")
        self.open.callback(_restart_workers, rig)
        self.open.callback(flag.unlink)
        _restart_workers(rig)
        return self.proxy

    def end(self) -> None:
        self.open.close()
        self.proxy = None


def _restart_workers(rig: Rig) -> None:
    pids = [worker["pid"] for worker in rig.workers_ready(WORKERS)]
    for pid in pids:
        rig.kill(pid, signal.SIGTERM)
    until(lambda: all(blows.gone(pid) for pid in pids), STOPPED_WITHIN_S * slack(), "the end of all workers")
    rig.workers_ready(WORKERS)


def _signal(role: str, number: signal.Signals, rig: Rig) -> None:
    rig.kill(rig.pid(role), number)


def _flush(rig: Rig) -> None:
    rig.redis().flushall()


ROWS: Mapping[str, Callable[[Rig, Figures], None]] = {
    "term": terminated,
    "valkey:flushed": partial(struck, blow=_flush),
    "valkey:killed": partial(struck, blow=partial(_signal, "valkey", signal.SIGKILL)),
    "valkey:restarted": partial(struck, blow=partial(_signal, "valkey", signal.SIGTERM)),
    "postgres:restarted": partial(struck, blow=partial(_signal, "postgres", signal.SIGINT)),
    "broker:post": partial(unreachable, seconds=POST_OUTAGE_S),
    "broker:minute": partial(unreachable, seconds=LONG_OUTAGE_S),
    "twice": twice,
}
SWALLOWED = "commit:swallowed"

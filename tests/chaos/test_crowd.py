"""Two beats, two schedulers, three workers: many clients at once, watching through broken lines, and one flush."""

from __future__ import annotations

import random
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.chaos import load
from tests.chaos.figures import account
from tests.chaos.rig import Rig, Row, stack
from tests.chaos.viewer import Watched, watch
from tests.ground import until

SESSIONS, TURNS, CLIENTS = 20, 10, 8
WORDS = ("the", "moon", "is", "a", "quiet", "harbour", "where", "each", "small", "boat", "of", "light", "comes", "home")


@pytest.fixture(scope="module")
def crowd() -> Generator[Rig]:
    with stack(workers=3, concurrency=8, schedulers=2, beats=2) as rig:
        rig.workers_ready(3)
        yield rig


def _replies(session: int) -> list[Row]:
    """Each turn looks once and answers with a text of its own, piece by piece."""
    replies: list[Row] = []
    for turn in range(TURNS):
        text = f"answer {session}.{turn}: " + " ".join(WORDS[: 5 + (session + turn) % 12])
        replies.append({"text": "Let me look.", "tools": [{"name": "list_files", "input": {"path": "."}}]})
        replies.append({"text": text, "chunks": 5, "gap_s": 0.02})
    return replies


@pytest.mark.timeout(300)
def test_two_hundred_turns_of_eight_clients_each_end_once_and_are_seen_whole(crowd: Rig) -> None:
    sessions = [crowd.session() for _ in range(SESSIONS)]
    for number, session in enumerate(sessions):
        crowd.script(session, _replies(number))
    wanted = [session for _ in range(TURNS) for session in sessions]
    posted: dict[str, str] = {}
    flushed = threading.Event()

    def client(number: int) -> dict[str, Watched]:
        """Posts its share, two turns at a time, and watches them to their end."""
        rng = random.Random(number)
        share = wanted[number::CLIENTS]
        seen: dict[str, Watched] = {}
        for at in range(0, len(share), 2):
            if number == 0 and at >= len(share) // 2 and not flushed.is_set():
                flushed.set()
                crowd.redis().flushall()
            turns = [crowd.send(session, "and now?") for session in share[at : at + 2]]
            posted.update(zip(turns, share[at : at + 2], strict=True))
            seen |= {turn: watch(crowd, turn, rng) for turn in turns}
        return seen

    with ThreadPoolExecutor(CLIENTS) as pool:
        seen = {turn: one for found in pool.map(client, range(CLIENTS)) for turn, one in found.items()}

    figures = account(crowd, "2 beats, 2 schedulers, 3 workers, 200 turns, 8 clients, 1 flush", list(posted))
    figures.note = f"{sum(one.connections for one in seen.values())} connections"
    assert figures.clean(), figures
    assert (figures.takeovers, figures.repeated_calls) == (0, 0)
    assert flushed.is_set()
    answers = {str(row["id"]): row["answer"] for row in crowd.rows("select id, answer from turns where class <> 'job'")}
    assert {turn: one.text for turn, one in seen.items()} == answers
    assert {one.status for one in seen.values() if one.status} == {"done"}
    for number, session in enumerate(sessions):
        ledger = crowd.provider.ledger(session)
        assert [call["overlap"] for call in ledger] == [False] * (2 * TURNS)
        texts = crowd.rows("select answer from turns where session = %s order by seq", session)
        assert [row["answer"] for row in texts] == [reply["text"] for reply in _replies(number)[1::2]]


def test_each_instant_of_a_job_fires_once_under_two_beats_and_two_schedulers(crowd: Rig) -> None:
    jobs = [load.job(crowd, f"minutely-{number}", "* * * * *") for number in range(10)]
    until(lambda: not crowd.rows("select 1 from jobs where next_at is null"), 20, "the jobs' first instants")

    crowd.rows("update jobs set next_at = clock_now() - interval '61 seconds' returning id")

    def all_ran() -> bool:
        runs = [load.runs_of(crowd, job) for job in jobs]
        return all(runs)

    until(all_ran, 20, "a run of each job")
    turns = [turn for job in jobs for turn in load.runs_of(crowd, job)]
    figures = account(crowd, "ticks of 10 jobs under 2 beats and 2 schedulers", turns)
    assert figures.clean(), figures
    made = crowd.one("select count(*) as n from turns where class = 'job'")["n"]
    ticks = crowd.rows("select job, instant, count(*) as n from ticks where turn is not null group by 1, 2")
    assert {row["n"] for row in ticks} == {1}
    assert made == len(ticks), "a turn that no tick names"

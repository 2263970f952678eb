"""A short question while 500 children of another person wait and every slot that they may have is busy: how long from
its POST to the provider, by the provider's own clock, against the same without the flood."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
import psycopg

from shared.store import principals
from shared.values import PrincipalKind, Role
from tests.bench.figures import Figure, middle, quantile
from tests.bench.house import House
from tests.ground import until

CHILDREN = 500
EACH = 20
TRIES = 60
SLOTS = 8
KEPT = 1
DELAY_S = 2.0
STEPS = 80
"""Long enough that no slot is between two children while questions are asked: every one is busy throughout."""
EVERY_S = 0.15
TASKS = [{"goal": f"flood {n}"} for n in range(EACH)]


def measure(house: House) -> list[Figure]:
    with house.workers(1, SLOTS):
        house.reset()
        house.rig.provider.script([{"text": "At once."}] * 200, match={"contains": "quick"})
        (session,) = house.sessions(1)
        for _ in range(5):
            _ask(house, session)
        alone = [_ask(house, session) for _ in range(TRIES)]
        _flood(house)
        watch = _Watch(house)
        under = [_ask(house, session) for _ in range(TRIES)]
        queued, running = watch.stop()
        _end(house)
    p95, calm = quantile(under, 0.95), quantile(alone, 0.95)
    note = (
        f"middle {middle(under):.1f} against {middle(alone):.1f}; children queued at least {min(queued)}, "
        f"running at least {min(running)} of {SLOTS - KEPT}"
    )
    held = min(queued) >= 400 and min(running) == SLOTS - KEPT
    return [
        Figure(
            f"a question's start under {CHILDREN} children of another person, p95", p95, "ms", calm, "without them",
            mark=2.0 if held else None, judged=p95 / calm, note=note,
            detail={"under_ms": under, "alone_ms": alone, "queued": queued, "running": running},
        )
    ]  # fmt: skip


def _ask(house: House, session: str) -> float:
    sent = time.monotonic()
    turn = house.rig.send(session, "quick")
    house.wait([turn], 30, 0.01)
    started = house.rig.provider.ledger(session)[-1]["started"]
    time.sleep(EVERY_S)
    return (started - sent) * 1_000


def _flood(house: House) -> None:
    """Parents of another person, who each sleep for twenty children that take their time."""
    provider, rig = house.rig.provider, house.rig
    parents: list[dict[str, Any]] = [
        {"text": "I hand it on", "tools": [{"name": "delegate_task", "input": {"tasks": TASKS}}]}, {"text": "all in"}
    ]  # fmt: skip
    provider.script(parents, match={"contains": "delegate now"})
    provider.post(
        "script",
        {
            "match": {"contains": "flood"}, "policy": "steps", "steps": STEPS, "tool": "list_files",
            "input": {"path": "."}, "text": "Done.", "delay_s": DELAY_S,
        },
    )  # fmt: skip
    token = principals.new_token()
    with psycopg.connect(rig.facts["database_url"], autocommit=True) as connection:
        flooder = principals.ensure_principal(connection, "flooder", PrincipalKind.PERSON, Role.MEMBER)
        principals.add_token(connection, flooder, token, "bench")
    with httpx.Client(base_url=rig.facts["url"], headers={"authorization": f"Bearer {token}"}, timeout=30) as http:
        for _ in range(CHILDREN // EACH):
            made = http.post("/v1/sessions", json={}).raise_for_status().json()["id"]
            http.post(f"/v1/sessions/{made}/turns", json={"input": "delegate now"}).raise_for_status()
    until(lambda: _children(house, "queued", "running") == CHILDREN, 60, "the flood")
    until(lambda: _children(house, "running") == SLOTS - KEPT, 20, "full slots")


def _children(house: House, *statuses: str) -> int:
    query = "select count(*) as n from turns where class = 'child' and status = any(%s)"
    return house.rig.one(query, list(statuses))["n"]


def _end(house: House) -> None:
    """What is left is nobody's: the next figure begins without it."""
    house.rig.http.post(
        "/v1/stops", json={"scope": "person", "subject": "flooder", "cancel": True, "note": "the figure is taken"}
    ).raise_for_status()
    until(lambda: _children(house, "queued", "running") == 0, 60, "the flood's end")


class _Watch:
    """How many children wait and run, again and again while the questions are asked."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._queued: list[int] = []
        self._running: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        query = (
            b"select count(*) filter (where status = 'queued'), count(*) filter (where status = 'running') "
            b"from turns where class = 'child' and status in ('queued', 'running')"
        )
        with psycopg.connect(self._house.rig.facts["database_url"], autocommit=True) as connection:
            while True:
                row = connection.execute(query).fetchone()
                assert row is not None
                self._queued.append(row[0])
                self._running.append(row[1])
                if self._stop.wait(0.5):
                    return

    def stop(self) -> tuple[list[int], list[int]]:
        self._stop.set()
        self._thread.join(5)
        return self._queued, self._running

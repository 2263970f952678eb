"""Many turns that wait on a running stack, made by a client: calls that people must allow, parents of children."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.chaos.rig import Rig, Row, slack, until

WRITES = {
    "policy": "steps",
    "steps": 1,
    "tool": "write_file",
    "input": {"path": "a.txt", "content": "x"},
    "text": "Done.",
}


@dataclass(frozen=True, slots=True)
class Crowd:
    """Turns of a session each, in the same order."""

    rig: Rig
    sessions: list[str]
    turns: list[str]

    def parked(self, reason: str) -> int:
        found = self.rig.one(
            "select count(*) as n, count(holder) as held from turns"
            " where id = any(%s::uuid[]) and status = 'parked' and parked_on = %s",
            self.turns, reason,
        )  # fmt: skip
        assert found["held"] == 0
        return found["n"]

    def await_parked(self, reason: str, seconds: float) -> float:
        """Until all of them sleep for this; the seconds that took."""
        began = time.monotonic()
        until(lambda: self.parked(reason) == len(self.turns), seconds * slack(), f"{len(self.turns)} parks on {reason}")
        return time.monotonic() - began


def writing(rig: Rig, count: int) -> Crowd:
    """Turns that each ask to write one file."""
    rig.provider.post("script", WRITES)
    return begun(rig, count, "write it")


def delegating(rig: Rig, count: int, *, background: bool = False) -> Crowd:
    """Turns that each hand one piece of work to a child, which answers as the script `child` says."""
    task: Row = {"tasks": [{"goal": "find out: script:child"}], **({"background": True} if background else {})}
    reply: list[Row] = [
        {"text": "I hand it on", "tools": [{"name": "delegate_task", "input": task}]},
        {"text": "all in"},
    ]
    sessions = opened(rig, count)
    for session in sessions:
        rig.script(session, reply)
    return Crowd(rig, sessions, sent(rig, sessions, "find out"))


def children_answer(rig: Rig, *, after_s: float = 0.0) -> None:
    """From now on each child says what it found after so long, however often it is asked."""
    replies = [{"text": "the finding", "delay_s": after_s}]
    rig.provider.post("script", {"name": "child", "replies": replies, "repeat": True})


def begun(rig: Rig, count: int, text: str) -> Crowd:
    sessions = opened(rig, count)
    return Crowd(rig, sessions, sent(rig, sessions, text))


def opened(rig: Rig, count: int) -> list[str]:
    with ThreadPoolExecutor(4) as pool:
        return [one.result() for one in [pool.submit(rig.session) for _ in range(count)]]


def sent(rig: Rig, sessions: Sequence[str], text: str) -> list[str]:
    with ThreadPoolExecutor(4) as pool:
        return [one.result() for one in [pool.submit(rig.send, session, text) for session in sessions]]


def pending(rig: Rig) -> list[Row]:
    """Every request that waits, by the pages of the API."""
    found: list[Row] = []
    cursor: str | None = None
    while True:
        params = {"status": "pending", "limit": 200, **({"cursor": cursor} if cursor else {})}
        page = rig.http.get("/v1/approvals", params=params).raise_for_status().json()
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            return found


def approve(rig: Rig, approvals: Sequence[str]) -> None:
    """All of these in one go, by four clients."""

    def one(approval: str) -> None:
        rig.http.post(f"/v1/approvals/{approval}", json={"decision": "approve"}).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, approvals))

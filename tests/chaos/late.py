"""A worker that is frozen at a point for longer than its lease, and what it leaves behind when it goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.chaos.figures import Figures, account
from tests.chaos.rig import Rig
from tests.ground import until

TABLES = ("sessions", "turns", "messages", "edits", "calls", "tool_runs", "inbox")
Written = dict[str, list[str]]


@dataclass(slots=True)
class Late:
    """What the frozen worker had in hand, and what it wrote when others had finished it."""

    figures: Figures
    taken: list[str]
    wrote: Written  # what stands that did not stand before the late worker went on
    thawed: float  # seconds since the epoch, by the clock that files are dated by


def written(rig: Rig, sessions: list[str], turns: list[str]) -> Written:
    """Every row of these sessions with the transaction that wrote it, and every entry of their streams."""
    found: Written = {}
    for table in TABLES:
        key = "id" if table == "sessions" else "session"
        query = f"select xmin::text || ' ' || t::text as line from {table} t where {key} = any(%s::uuid[])"  # noqa: S608 - names from the list above
        found[table] = sorted(row["line"] for row in rig.rows(query, sessions))
    client: Any = rig.redis()
    for turn in turns:
        found[turn] = [str(entry) for entry in client.xrange(f"ns:turn:{turn}:events")]
    return found


def fences(rig: Rig, turn: str) -> list[int]:
    """The fence of each entry of a turn's stream, in the order of the stream."""
    client: Any = rig.redis()
    return [int(fields[b"id"].split(b".")[1]) for _, fields in client.xrange(f"ns:turn:{turn}:events")]


def frozen_at(rig: Rig, point: str, *, seconds: float, count: int = 6) -> Late:
    """Freeze one of two workers at `point` under a few turns for so long; thaw it when the other has finished them."""
    pause = rig.pause_at(point)
    victim = rig.replace_worker(rig.workers_ready(2)[0]["pid"])
    sessions = [rig.session() for _ in range(count)]
    for session in sessions:
        wish = {"path": "once.txt", "content": "written"}
        script: dict[str, Any] = {"policy": "steps", "steps": 1, "tool": "write_file", "input": wish, "chunks": 3}
        rig.script(session, **script, gap_s=0.02, delay_s=0.2, text=f"the answer of {session}")
        if point == "parking":
            rig.script(session, [{"fault": {"kind": "status", "status": 429, "retry_after": 6}}])
    rig.provider.post("hold", {"hold": True})  # so that the other worker's slots fill and the victim gets its share
    pause.arm()
    turns = [rig.send(session, "go on without me") for session in sessions]
    held = "select id from turns where holder = %s and status = 'running'"
    until(lambda: pause.pid() or rig.rows(held, victim["boot_id"]), 20, "the victim's share")
    rig.provider.post("hold", {"hold": False})
    assert pause.arrived() == victim["pid"]

    frozen = rig.kill(victim["pid"], signal.SIGSTOP)
    taken = _settled(lambda: [str(row["id"]) for row in rig.rows(held, victim["boot_id"])])
    figures = account(rig, f"SIGSTOP one of two workers at {point} for {seconds:.0f} s", turns)
    time.sleep(max(0.0, frozen + seconds - time.time()))
    before = written(rig, sessions, taken)

    thawed = time.time()
    rig.kill(victim["pid"], signal.SIGCONT)
    pause.go()
    try:
        until(lambda: set(taken) <= _let_go(rig), 20, "the late worker's own finding that it is late")
    except AssertionError as error:
        for turn in set(taken) - _let_go(rig):
            error.add_note(f"{turn}: {rig.turn(turn)}, log: {rig.of_turn(turn)}")
        raise
    after = written(rig, sessions, taken)  # a turn that it had ended itself may still be told of
    for turn in turns:
        seen = fences(rig, turn)
        assert seen == sorted(seen), "an entry of an older holder behind the newer one's"
    wrote = {name: [line for line in after[name] if line not in before[name]] for name in after}
    return Late(figures, taken, {name: lines for name, lines in wrote.items() if lines}, thawed)


def _settled(read: Callable[[], list[str]]) -> list[str]:
    """What `read` returns once it has been the same for half a second: a statement that was on its way when its
    sender was stopped still counts as written in time."""
    found, since = read(), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.05)
        now = read()
        if now != found:
            found, since = now, time.monotonic()
    return found


def _let_go(rig: Rig) -> set[str]:
    return {row["turn"] for row in rig.logged("turn.let_go")}

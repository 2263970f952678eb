"""What a step adds to a bare loop: both against the same server, by its own clock, from one request to the next.

Each figure is a mean over windows of 16 steps, so that what happens now and then is in it; of all windows the middle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from tests.bench import bare
from tests.bench.figures import Figure, middle
from tests.bench.house import SMALL_MODEL, House

WINDOW = 16
AT = {10: (1, 17), 100: (42, 58), 1_000: (484, 516)}
"""For each number of messages: the steps between whose requests is measured (a step adds two messages)."""


def measure(house: House) -> list[Figure]:
    ours: dict[int, list[float]] = {at: [] for at in AT}
    theirs: dict[int, list[float]] = {at: [] for at in AT}
    # The bare loop sends everything: what is compared is the same requests, and the provider's script counts the calls
    # in them. Whether the past is to be edited is still decided before each call.
    with house.workers(1, 8, compact_by_meter=0, prune_warm=0, prune_cold=0, stub_at_birth=0):
        session = _session(house)
        prefix = prefix_of(house, session)
        folder = Path(house.rig.one("select workspace from sessions where id = %s", session)["workspace"])
        plain = bare.open_bare(house.rig.provider.url, SMALL_MODEL, prefix, folder)
        for steps in (60, 60, 520, 60, 60, 520, 60):
            house.reset()
            house.script(steps=steps)
            bare_session = str(uuid4())
            plain.turn([], "go", bare_session)
            _collect(house, bare_session, theirs)
            session = _session(house)
            turn = house.rig.send(session, "go", max_steps=600)
            house.wait([turn], 120)
            _collect(house, session, ours)
    return [_figure(at, ours[at], theirs[at]) for at in AT]


def _figure(at: int, ours: list[float], theirs: list[float]) -> Figure:
    mine, bare_ms = middle(ours), middle(theirs)
    note = f"added {mine - bare_ms:.2f} ms (best window against best {min(ours) - min(theirs):.2f})"
    name = f"a step with {at:,} messages of history"
    detail = {"ours_ms": ours, "bare_ms": theirs, "added_ms": mine - bare_ms}
    if at == 100:
        return Figure(
            f"{name}: ms added", mine, "ms", bare_ms, "bare SDK loop", mark=2.0, judged=mine - bare_ms, note=note,
            detail=detail,
        )  # fmt: skip
    mark = 1.0 if at == 1_000 else None
    return Figure(
        f"{name}: whole", mine, "ms", bare_ms, "bare SDK loop", mark=mark, judged=mine / bare_ms if mark else None,
        note=note, detail=detail,
    )  # fmt: skip


def _session(house: House) -> str:
    """A session whose workspace makes `list_files` answer about a kilobyte."""
    session = house.rig.session()
    folder = Path(house.rig.one("select workspace from sessions where id = %s", session)["workspace"])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(12):
        (folder / f"a-file-of-the-workspace-with-a-name-of-some-length-{number:02}").write_text("x" * number, "utf-8")
    return session


def prefix_of(house: House, session: str) -> dict[str, Any]:
    """System prompt and tools as the product sends them: a turn is run to have them stored."""
    house.script(steps=0)
    house.wait([house.rig.send(session, "hello")], 30)
    row = house.rig.one("select p.* from prefixes p join sessions s on s.prefix = p.digest where s.id = %s", session)
    return {
        "system": row["system_text"], "tools": orjson.loads(row["tools_text"]),
        "stable": row["system_text"][: row["stable_length"]],
    }  # fmt: skip


def _collect(house: House, session: str, into: dict[int, list[float]]) -> None:
    starts = [call["started"] for call in house.rig.provider.ledger(session)]
    for at, (first, last) in AT.items():
        for begin in range(first, last, WINDOW):
            if begin + WINDOW < len(starts):
                into[at].append((starts[begin + WINDOW] - starts[begin]) / WINDOW * 1_000)

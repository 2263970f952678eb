"""A provider that is out for an hour of the test clock: how soon another model answers, when the session's own is asked
again, how often the prefix broke and what that cost; and that no turn failed. Twice: it gives no sign at all, then it
lists its models and answers nothing."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from typing import Any

from tests.bench.figures import Figure
from tests.bench.house import LIMIT, SMALL_MODEL, House
from tests.chaos.rig import stack
from tests.ground import rehearsing

SESSIONS = 12
MINUTES = 60
EVERY = 10
"""Minutes of the test clock between two turns of each session."""
OTHER = "gpt-6.1-sol"
ENDS_S = 120.0
OUTAGES: Mapping[str, Mapping[str, object]] = {"silent": {"status": 503}, "lists": {"status": 529, "lists": True}}
SWITCHES = (
    "select cause from edits where kind = 'prefix' and cause like 'from %%' and session = any(%s::uuid[]) order by id"
)


def measure(house: House) -> list[Figure]:
    del house  # whose clock is the real one
    settings = {"PRINCIPAL_LIMIT": LIMIT, "LOG_LEVEL": "warning", "STRICT": 1, "TEST_CLOCK": 1}
    with stack(workers=0, settings=settings) as rig:
        return drive(House(rig))


def drive(house: House) -> list[Figure]:
    """On a stack without workers that has a test clock."""
    rig = house.rig
    key = rig.home / "keys" / "openai" / "main"
    key.parent.mkdir(parents=True, exist_ok=True)
    key.write_text("sk-proj-bench")
    key.chmod(0o600)
    house.script(steps=1, text="Here.")
    with rehearsing() as other:
        other.post(
            "script", {"policy": "steps", "steps": 1, "tool": "list_files", "input": {"path": "."}, "text": "There."}
        )
        more: dict[str, Any] = {
            "PROVIDERS": json.dumps({"openai": {"base_url": other.url}}), "FALLBACKS": f"*=openai:{OTHER}",
            "TEST_CLOCK": 1, "LOG_LEVEL": "warning", "STRICT": 1,
        }  # fmt: skip
        with house.workers(2, 8, **more):
            return [figure for way, down in OUTAGES.items() for figure in _outage(house, way, down)]


def _outage(house: House, way: str, down: Mapping[str, object]) -> list[Figure]:
    sessions = house.sessions(SESSIONS, model=SMALL_MODEL)
    _turns(house, sessions, "before")
    house.rig.provider.post("down", dict(down))
    during: list[str] = []
    for _ in range(MINUTES // EVERY):
        during += _turns(house, sessions, "during")
        _pass(house, EVERY * 60)
    house.rig.provider.post("down", {"status": None})
    _pass(house, 120)
    after = _turns(house, sessions, "after")
    return _figures(house, way, sessions, during, after)


def _turns(house: House, sessions: list[str], text: str) -> list[str]:
    sent = house.send(sessions, text)
    house.wait(sent, ENDS_S)
    return sent


def _pass(house: House, seconds: int) -> None:
    house.rig.http.post("/v1/test/clock", json={"advance_s": seconds, "jump": True}, timeout=60).raise_for_status()


def _figures(house: House, way: str, sessions: list[str], during: list[str], after: list[str]) -> list[Figure]:
    rows = house.rig.rows(
        "select t.id, t.status, t.steps - t.refunds as used, c.provider,"
        " count(*) filter (where c.purpose = 'main' and c.status = 'settled') as answered,"
        " count(*) filter (where c.purpose = 'main' and c.status = 'failed') as failed,"
        " count(*) filter (where c.purpose = 'probe') as probes,"
        " coalesce(sum(c.cost_usd) filter (where c.purpose = 'probe'), 0)::float8 as usd"
        " from turns t join calls c on c.turn = t.id where t.id = any(%s::uuid[]) group by 1, 2, 3, 4",
        during + after,
    )
    own, out, over = "anthropic", set(during), set(after)
    answered = [row for row in rows if str(row["id"]) in out and row["provider"] == "openai" and row["answered"]]
    steps = [row["used"] for row in answered]
    failed = {row["id"] for row in rows if row["status"] != "done"}
    back = [row for row in rows if str(row["id"]) in over and row["provider"] == own and row["answered"]]
    lost = [sum(row["failed"] for row in rows if str(row["id"]) == turn and row["provider"] == own) for turn in during]
    probes = f"{sum(row['probes'] for row in rows)} probes, ${sum(row['usd'] for row in rows):.4f}"
    causes = [row["cause"] for row in house.rig.rows(SWITCHES, sessions)]
    priced = [float(cause.rpartition("about $")[2]) for cause in causes if "about $" in cause]
    return [
        Figure(f"{way}: turns failed while another model was up", float(len(failed)), "", mark=0,
               note=f"{len(during)} turns in an hour without the session's own model"),
        Figure(f"{way}: turns of the outage that the other model answered", len(answered) / len(during), "", mark=1,
               sense="at least", note=f"at most {max(steps)} steps counted of two made; tried in vain before, a turn:"
               f" {statistics.mean(lost):.2f}, at most {max(lost)}"),
        Figure(f"{way}: turns after it that the session's own model answered", len(back) / len(after), "", mark=1,
               sense="at least"),
        Figure(f"{way}: prefix broken, a session", len(causes) / len(sessions), "", mark=2,
               note=f"priced: {len(priced)} of {len(causes)}, ${sum(priced):.4f} in all; {probes}"),
    ]  # fmt: skip

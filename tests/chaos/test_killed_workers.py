"""kill -9 of a worker in the middle of a turn, at every point where it could hurt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import load
from tests.chaos.chain import Chain
from tests.chaos.figures import account, resume
from tests.chaos.rig import Rig, slack

ANSWER = "the scripted answer"
# Point → (calls lost with the worker, how many of them the provider had seen).
POINTS = {
    "claiming": (0, 0),
    "reserved": (1, 0),
    "before_call": (1, 0),
    "after_call": (1, 1),
    "in_stream": (1, 1),
    "recording": (1, 1),
    "recorded": (0, 0),
    "before_tool": (0, 0),
    "after_tool": (0, 0),
    "parking": (0, 0),
    "finishing": (1, 1),
    "finished": (0, 0),
}


ONCE = ("before_tool", "after_tool")
ORDER = (*POINTS, *ONCE, None)


@pytest.fixture(scope="module")
def session(chain: Chain) -> str:
    """One for all points: its prefix has to outlive every one of them."""
    made = chain.rig.session()
    chain.rig.script(made, policy="steps", steps=2, calls=3, tool="list_files", input={"path": "."}, text=ANSWER)
    return made


def test_a_turn_whose_only_worker_is_killed_runs_again_within_five_seconds(chain: Chain) -> None:
    rig = chain.rig
    session = rig.session()
    rig.script(session, [{"text": ANSWER, "delay_s": 60}, {"text": ANSWER}])
    turn = rig.send(session, "wait for it")
    rig.wait(inflight=1, session=session)
    before = rig.holder(turn)
    assert before is not None
    chain.following(ORDER[0])

    killed_at = rig.kill(before["pid"])
    resumed = resume(rig, turn, killed_at, before)

    figures = account(rig, "kill -9 the only worker, call in flight", [turn])
    figures.resumes.append(resumed)
    view = rig.turn(turn)
    assert (view["status"], view["answer"], view["steps_used"], view["steps_refunded"]) == ("done", ANSWER, 1, 1)
    assert [call["status"] for call in rig.calls(turn)] == ["lost", "settled"]
    assert [call["state"] for call in rig.provider.ledger(session)] == ["client_closed", "done"]
    assert figures.clean(), figures
    assert resumed.claimed < 5 * slack(), resumed


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_killed_at_any_point_costs_at_most_the_call_in_flight(chain: Chain, session: str, point: str) -> None:
    rig = chain.rig
    if point == "parking":
        rig.script(session, [{"fault": {"kind": "status", "status": 429, "retry_after": 6}}])
    seen_before = len(rig.provider.ledger(session))
    lost, seen = POINTS[point]

    turn, figures = chain.kill(
        f"kill -9 at {point}", point, session, f"die at {point}", following=ORDER[ORDER.index(point) + 1]
    )

    row = rig.one("select * from turns where id = %s", turn)
    calls = rig.rows("select status, refund from calls where turn = %s order by seq", turn)
    failed = 1 if point == "parking" else 0
    statuses = [call["status"] for call in calls]
    assert figures.clean(), figures
    assert (row["status"], row["answer"], row["step"], row["steps"] - row["refunds"]) == ("done", ANSWER, 3, 3)
    assert (statuses.count("settled"), statuses.count("lost"), statuses.count("failed")) == (3, lost, failed)
    assert row["refunds"] == lost
    assert row["takeovers"] == (0 if point in ("claiming", "finished") else 1)
    assert len(rig.provider.ledger(session)) - seen_before == 3 + seen + failed
    assert rig.one("select reserved_usd from sessions where id = %s", session)["reserved_usd"] == 0


@pytest.mark.parametrize("point", ONCE)
def test_a_write_that_was_started_and_lost_is_told_as_unknown_and_never_done_again(
    chain: Chain, point: str, tmp_path: Path
) -> None:
    rig = chain.rig
    session = rig.session()
    wish = {"path": "once.txt", "content": "written once"}
    rig.script(session, policy="steps", steps=1, calls=1, tool="write_file", input=wish, text=ANSWER)
    rig.provider.post("capture", {"directory": str(tmp_path)})

    with chain.held(point, session, "write it") as (turn, pid):
        before = rig.one("select * from workers where pid = %s and stopped_at is null", pid)
        workspace = Path(rig.one("select workspace from sessions where id = %s", session)["workspace"])
        written = [path.stat().st_ino for path in workspace.glob("once.txt")]
        chain.following("after_tool" if point == "before_tool" else None)
        killed_at = rig.kill(pid)
    resumed = resume(rig, turn, killed_at, before)
    figures = account(rig, f"kill -9 at {point} of a run that may happen once", [turn])
    figures.resumes.append(resumed)
    rig.provider.post("capture", {"directory": None})

    assert written == [] if point == "before_tool" else len(written) == 1
    assert [path.stat().st_ino for path in workspace.glob("once.txt")] == written, "it ran again"
    (run,) = rig.rows("select status, result from tool_runs where turn = %s", turn)
    assert run["status"] == "unknown"
    bodies = [path.read_text("utf-8") for path in sorted(tmp_path.glob(f"*{session}*.json"))]
    assert len(bodies) == 2
    assert ["outcome unknown" in body for body in bodies] == [False, True]
    assert rig.turn(turn)["answer"] == ANSWER
    assert figures.clean(), figures


def test_where_a_second_worker_lives_the_turn_runs_again_within_three_seconds(pair: Rig) -> None:
    pair.workers_ready(2)
    turn = load.stalled(pair)
    before = pair.holder(turn)
    assert before is not None

    resumed = resume(pair, turn, pair.kill(before["pid"]), before)

    figures = account(pair, "kill -9 one of two workers, call in flight", [turn])
    figures.resumes.append(resumed)
    assert figures.clean(), figures
    assert [call["status"] for call in pair.calls(turn)] == ["lost", "settled"]
    assert resumed.claimed < 3 * slack(), resumed

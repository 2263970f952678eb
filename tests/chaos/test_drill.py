"""The drill, each point once: what `nightshift drill` does, with a shorter lease and without the minute's outage, which
stands at its full length in `longest`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deploy.drill import effect, lanes, run
from deploy.drill.effect import Key
from deploy.drill.figures import Figures
from tests.chaos import figures
from tests.chaos.rig import slack
from tests.ground import ROOT

KINDS = {"around a step": ("--skip", "stop", "--skip", "broker:minute"), "frozen": ("--point", "stop")}
CLEAN = {"runs": 1, "lost": 0, "duplicated": 0, "wrongly_unknown": 0, "hung": 0}
MAY_BE_UNKNOWN = {"recorded", "before_tool", "in_tool", "after_tool"}


@pytest.mark.timeout(580)
@pytest.mark.parametrize("kind", KINDS)
def test_no_point_of_the_drill_loses_repeats_or_hangs_anything(kind: str) -> None:
    # On a crowded machine a worker that lives may be late for so short a lease, and then its turn is rightly taken.
    lease = f"{min(15.0, 4 * slack()):.1f}"
    command = [sys.executable, "-m", "deploy.main", "drill", "--json", "--lease", lease, *KINDS[kind]]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    ended = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=560, check=False)

    assert ended.returncode == 0, ended.stderr[-6000:]
    rows: list[dict[str, Any]] = json.loads(ended.stdout)
    assert [{name: row[name] for name in CLEAN} for row in rows] == [CLEAN] * len(rows)
    assert sum(row["unknown"] for row in rows if row["point"].partition(":")[2] in MAY_BE_UNKNOWN) > 0
    assert all(row["resumes_s"] for row in rows)
    for row in rows:
        made = figures.Figures(f"drill {row['point']}", turns=row["turns"], repeated_calls=row["billed_again"])
        made.seconds.append(max(row["resumes_s"]))
        figures.TABLE.append(made)


def test_every_point_stands_in_one_of_the_kinds() -> None:
    assert len(run.POINTS) == len(set(run.POINTS)) == 37
    assert {point.partition(":")[0] for point in run.POINTS} == {
        "kill", "keyed", "checkable", "stop", "leader", "term", "valkey", "postgres", "broker", "twice", "commit",
    }  # fmt: skip


def test_an_effect_is_on_the_disk_with_the_name_of_its_run(tmp_path: Path) -> None:
    log = tmp_path / "effects.log"
    assert effect.logged(log) == Counter()
    one, other = Key("a", 1, 1), Key("a", 1, 2)
    for key in (one, other, one):
        effect.append(log, key)
    assert effect.logged(log) == Counter({one: 2, other: 1})


def test_the_drills_far_side_has_the_effect_of_a_key_once(tmp_path: Path) -> None:
    log = tmp_path / "effects.log"
    assert [effect.append(log, Key("a", 1, 1), "key") for _ in range(2)] == [True, False]
    assert effect.append(log, Key("a", 1, 1), "another key")  # what a key that is not stable would do
    assert effect.logged(log) == Counter({Key("a", 1, 1): 2})


@pytest.mark.parametrize("kind", ["lost", "duplicated", "hung", "wrongly_unknown"])
def test_a_single_fault_makes_the_drill_fail(kind: str) -> None:
    found = Figures("kill:in_tool", runs=1)
    assert found.clean
    found.wrong(kind, "this one")
    assert not found.clean
    assert found.told == [f"{kind}: this one"]


def test_each_point_is_in_one_lane_only() -> None:
    assert sorted(point for unit in run.units(run.POINTS) for point in unit) == sorted(run.POINTS)
    assert run.units(["stop:in_tool", "term", "broker:minute"]) == [["broker:minute"], ["stop:in_tool"], ["term"]]


def test_what_a_lane_found_is_counted_with_the_rest() -> None:
    total, lane = Figures("term"), Figures("term", runs=2, turns=4, unknown=1, resumes=[0.5])
    lane.wrong("lost", "this one")
    for _ in range(2):
        total.take(Figures.from_json(lane.as_json()))
    assert (total.runs, total.turns, total.unknown, total.lost, total.resumes) == (4, 8, 2, 2, [0.5, 0.5])
    assert total.told == ["lost: this one"] * 2
    assert not total.clean


def test_a_lane_that_ends_without_figures_leaves_its_points_without_runs() -> None:
    figures = {"term": Figures("term")}
    lanes.drill(figures, [["term"]], 2, options=("--no-such-option",))
    assert figures["term"].runs == 0


def test_a_point_that_does_not_exist_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["--point", "kill:nowhere"])
    assert ended.value.code == 2
    assert "no point kill:nowhere" in capsys.readouterr().err

"""The README says what is: the diagram of the one table, commands that exist, settings with their defaults."""

from __future__ import annotations

import re
from pathlib import Path

from api.cli.arguments import parser
from deploy.drill.run import POINTS
from shared.gate import bypass
from shared.settings import Settings
from shared.transitions import diagram

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def test_the_diagram_is_the_one_of_the_transition_table() -> None:
    found = re.search(r"<!-- transitions -->\n```mermaid\n(.*?)\n```\n<!-- /transitions -->", README, re.DOTALL)
    assert found is not None
    assert found.group(1) == diagram()


def test_every_command_of_the_table_is_one_and_every_one_is_in_the_table() -> None:
    usage = parser().format_help()
    known = {*re.findall(r"^    (\w+)(?:  |$)", usage, re.MULTILINE), "drill"}  # a process of its own, not a client
    rows = [
        row for row in README.splitlines() if row.startswith("| `nightshift ") and "processes themselves" not in row
    ]
    told = {word for row in rows for word in re.findall(r"`(?:nightshift )?(\w+)", row.split(" | ")[0])}
    assert known == told


def test_every_setting_of_the_table_is_one() -> None:
    named = set(re.findall(r"`NIGHTSHIFT_(\w+)`", README))
    assert {name.lower() for name in named - {bypass.VARIABLE.removeprefix("NIGHTSHIFT_")}} <= set(
        Settings.model_fields
    )


def test_the_defaults_of_the_table_are_the_ones_in_force() -> None:
    default = Settings()
    rows = dict(re.findall(r"^\| `NIGHTSHIFT_(\w+)`[^|]*\|[^|]*\| `?([^`|]+?)`? \|$", README, re.MULTILINE))
    for name in ("HOME", "MODEL", "MAX_STEPS", "SLOTS", "TEAM_ZONE", "LOG_LEVEL"):
        assert rows[name] == str(getattr(default, name.lower()))


def test_the_drills_table_has_a_row_for_each_of_its_points_and_each_is_clean() -> None:
    found = re.search(r"<!-- drill -->\n(.*?)\n<!-- /drill -->", README, re.DOTALL)
    assert found is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.group(1).splitlines()]
    assert rows[0][3:7] == ["lost", "duplicated", "unknown", "hung"]
    assert {row[0] for row in rows[2:]} == set(POINTS)
    assert {(row[3], row[4], row[6]) for row in rows[2:]} == {("0", "0", "0")}

"""Which wall a machine has is found out by trying; what demands a stronger one is not offered, and it is said why."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from api.cli.doctor import machine
from api.cli.doctor.finding import Facts, State
from shared.sandbox import landlock, seccomp, tiers
from shared.sandbox.tiers import Tier, Way
from shared.settings import Settings
from tests.sandbox.conftest import Person, cases, people, person
from workers.sandbox import wall
from workers.tools import terminal
from workers.tools.availability import Availability


@pytest.fixture(params=people())
def who(request: pytest.FixtureRequest) -> Generator[Person]:
    folder = Path(tempfile.mkdtemp(prefix="ns-tier-"))
    folder.chmod(0o755)
    yield person(request.param, folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_first_program_that_holds_is_taken_and_the_one_that_does_not_is_passed_over(who: Person) -> None:
    given = tiers.programs()[-1:]
    way = who.tried("/bin/true", "a program that does nothing", *(part for found in given for part in found))
    assert (way.tier is Tier.ISOLATED) == ((who.name, Tier.ISOLATED) in cases())
    if way.tier is Tier.ISOLATED:
        assert [(way.bwrap, way.origin)] == given
        assert way.python


def test_without_name_spaces_root_is_confined_and_an_ordinary_user_has_nothing(who: Person) -> None:
    way = who.tried("/bin/false", "the PATH")
    if who.is_root and landlock.version() >= landlock.SCOPES_FROM and seccomp.known():
        assert way.tier is Tier.CONFINED
        assert way.why.startswith("isolated, with bubblewrap from the PATH: ")
    elif not who.is_root:
        assert way.tier is Tier.NONE
        assert "confined: a user of its own takes a worker that is root" in way.why


def test_a_program_that_runs_everything_and_walls_off_nothing_is_found_out(who: Person, tmp_path: Path) -> None:
    """It runs the command as it stands: what a wrapper that ignores its arguments would do."""
    folder = Path(tempfile.mkdtemp(prefix="ns-fake-"))
    folder.chmod(0o755)
    fake = folder / "bwrap"
    fake.write_text('#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift\ncd /tmp; exec "$@"\n')
    fake.chmod(0o755)
    way = who.tried(str(fake), "elsewhere")
    shutil.rmtree(folder)
    assert way.tier is not Tier.ISOLATED


def test_there_is_one_program_on_the_path_or_in_the_wheel() -> None:
    assert all(Path(path).is_file() for path, _ in tiers.programs())


@pytest.mark.parametrize(
    ("found", "wanted", "offered"),
    [
        (Tier.ISOLATED, Tier.ISOLATED, True), (Tier.ISOLATED, Tier.CONFINED, True),
        (Tier.CONFINED, Tier.CONFINED, True),
        (Tier.CONFINED, Tier.ISOLATED, False), (Tier.NONE, Tier.CONFINED, False), (Tier.NONE, Tier.ISOLATED, False),
        (Tier.NONE, Tier.NONE, False),
    ],
)  # fmt: skip
def test_a_tool_is_offered_where_the_wall_is_at_least_what_is_demanded(
    found: Tier, wanted: Tier, offered: bool
) -> None:
    why = wall.weaker(Way(found, why="name spaces are closed"), wanted)
    assert (why is None) is offered
    assert why is None or f"{wanted} is demanded: name spaces are closed" in why


def test_the_tool_itself_says_why_it_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall, "way", lambda: Way(Tier.CONFINED, why="isolated: no name spaces"))
    why = Availability().lacks(terminal.TOOL, Settings(sandbox_tier="isolated"))
    assert why == "this machine has only the tier confined, and isolated is demanded: isolated: no name spaces"
    assert Availability().lacks(terminal.TOOL, Settings()) is None


def test_the_doctor_names_the_wall_and_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Facts(tmp_path, Settings(sandbox_tier="isolated"), "", "", "", "", "", "", None)
    (whole,) = machine.sandbox(known)
    if wall.way().tier is Tier.ISOLATED:
        assert whole.state is State.OK
        assert whole.seen.startswith("isolated by bubblewrap from ")
    monkeypatch.setattr(tiers, "programs", list[tuple[str, str]])
    (broken,) = machine.sandbox(known)
    assert broken.state is State.FAILED
    assert "there is no bubblewrap, neither on the PATH nor as a Python wheel" in broken.seen
    assert broken.mend.startswith("terminal and run_code are not offered here: ")


@pytest.mark.parametrize("machine_name", ["x86_64", "aarch64"])
def test_the_filter_of_each_machine_is_whole_instructions(machine_name: str) -> None:
    code = seccomp.program(sockets=(seccomp.AF_UNIX,), machine=machine_name)
    assert len(code) % 8 == 0
    assert len(code) // 8 < 256
    assert code != seccomp.program(sockets=None, machine=machine_name)


def test_a_machine_whose_numbers_are_not_known_has_no_filter() -> None:
    assert not seccomp.known("riscv64")
    with pytest.raises(KeyError):
        seccomp.program(machine="riscv64")

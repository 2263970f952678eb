"""How often the disk of a run is looked at, and what counts: by a clock and a size that a test sets."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from workers.sandbox import ground, watch
from workers.sandbox.watch import Disk


@dataclass
class World:
    """What the folders hold, how long a look at them takes, and what the clock shows."""

    size: int = 100
    takes_s: float = 0.0
    clock: float = 0.0
    looks: int = 0

    def measure(self) -> int:
        self.looks += 1
        self.clock += self.takes_s
        return self.size

    def now(self) -> float:
        return self.clock


@pytest.fixture
def world() -> World:
    return World()


def begun(world: World, room: int = 50) -> Disk:
    disk = Disk(world.measure, room, [], world.now)
    disk.begin(world.size)
    return disk


def test_it_is_over_once_it_has_grown_by_more_than_there_was_room_for(world: World) -> None:
    disk = begun(world)
    found: list[bool] = []
    for size in (100, 150, 151, 120):
        world.size, world.clock = size, world.clock + 3
        found.append(disk.over(()))
    assert found == [False, False, True, False]


def test_it_is_looked_at_seldom_and_takes_a_twentieth_of_the_time_at_most(world: World) -> None:
    disk = begun(world)
    world.takes_s = 1.0
    while world.clock < 100:
        disk.over(())
        world.clock += 0.1
    assert world.looks == 5


def test_a_disk_that_fills_is_looked_at_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [1_000]

    def now(self: Disk) -> int:
        return free[0] if self else 0

    monkeypatch.setattr(Disk, "_free_now", now)
    disk = begun(world)
    assert (disk.over(()), world.looks) == (False, 0)
    free[0], world.size = 970, 160
    assert (disk.over(()), world.looks) == (True, 1)


def test_more_entries_than_can_be_looked_through_are_too_many(world: World) -> None:
    def too_much() -> int:
        raise ground.TooMuch

    disk = Disk(too_much, 50, [], world.now)
    disk.begin(0)
    world.clock = 3
    assert disk.over(())


@pytest.fixture
def folder(tmp_path: Path) -> Generator[int]:
    fd = os.open(tmp_path, ground.FOLDER)
    yield fd
    os.close(fd)


def test_what_counts_is_what_takes_room_each_file_once(tmp_path: Path, folder: int) -> None:
    empty = ground.size(folder)
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    os.link(tmp_path / "one", tmp_path / "two")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "children").mkdir()
    (tmp_path / "children" / "theirs").write_bytes(b"x" * 500_000)
    grown = ground.size(folder, past="children") - empty
    assert 100_000 <= grown < 140_000
    assert ground.look(folder, None).held == ground.size(folder) >= grown + 500_000


def test_a_file_without_a_name_counts_once_while_it_is_open(tmp_path: Path, folder: int) -> None:
    device = {os.fstat(folder).st_dev}
    with (tmp_path / "gone").open("wb") as file, (tmp_path / "gone").open("rb") as second:
        file.write(b"x" * 100_000)
        file.flush()
        (tmp_path / "gone").unlink()
        assert 100_000 <= watch.nameless([os.getpid()], device) < 140_000
        assert watch.nameless([os.getpid()], set()) == 0
        assert second.fileno()

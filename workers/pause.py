"""Named points at which a worker can be held, to kill, freeze or starve it from outside. Off unless a drill or a test
turns it on.

`NIGHTSHIFT_PAUSE_AT=point:directory`: the first process to reach the point creates `directory/<pid>` and waits there
until `directory/go` exists. The point stands between two statements exactly where a crash would have to be survived.
`NIGHTSHIFT_PAUSE_AT=armed:directory`: the same at each point for which there is a folder `directory/<point>`, once a
folder, so that one fleet can be held at one point after another.
"""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path

from shared.errors import SettingsError

ARMED = "armed"
_LONGEST_S = 120.0


class Point(StrEnum):
    CLAIMING = "claiming"  # between the pick and the claim, in the transaction
    BEFORE_CALL = "before_call"
    IN_STREAM = "in_stream"
    AFTER_CALL = "after_call"  # the reply is whole, nothing is committed
    RECORDING = "recording"  # in the transaction that records it
    RECORDED = "recorded"  # T1 is committed
    BEFORE_TOOL = "before_tool"
    STARTING = "starting"  # past the worker's last check, before the launcher hears of a tool's process
    IN_TOOL = "in_tool"  # past every check, and nothing has happened yet; only a drill's own tools know it
    AFTER_TOOL = "after_tool"
    RESERVED = "reserved"
    PARKING = "parking"
    FINISHING = "finishing"
    WAKING = "waking"  # a child has ended and its parent is woken, in the transaction that does both
    FINISHED = "finished"
    FLUSHED = "flushed"  # a compaction's facts are in memory, its edit is not written, in the transaction of both


class Pauses:
    """At most one point, and only for the first process that reaches it; or any that is armed."""

    def __init__(self, setting: str) -> None:
        name, _, directory = setting.partition(":")
        self._armed = name == ARMED
        try:
            self._point = Point(name) if name and not self._armed else None
        except ValueError as error:
            raise SettingsError(f"NIGHTSHIFT_PAUSE_AT: '{name}' is not a point; points: {', '.join(Point)}") from error
        self._directory = Path(directory)

    def inside(self, point: Point) -> bool:
        """Whether somebody may be held there: a statement that needs no transaction then gets one around the point."""
        return self._point is point or (self._armed and (self._directory / point).exists())

    def at(self, point: Point) -> None:
        """Wait here if this is the point and nobody waits or has waited there. Costs nothing otherwise."""
        if self._point is not point and not self._armed:
            return
        # Another drill may be armed under the same name before this one is let go.
        folder = (self._directory / point).resolve() if self._armed else self._directory
        try:
            os.close(os.open(folder / "taken", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            return
        (folder / str(os.getpid())).write_text(point)
        end = time.monotonic() + _LONGEST_S
        while not (folder / "go").exists() and time.monotonic() < end:
            time.sleep(0.005)

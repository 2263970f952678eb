"""Named points at which a test can hold a worker, to kill, freeze or starve it from outside. Off unless a test turns
it on.

`NIGHTSHIFT_PAUSE_AT=point:directory`: the first process to reach the point creates `directory/<pid>` and waits there
until `directory/go` exists. The point stands between two statements exactly where a crash would have to be survived.
"""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path

from shared.errors import SettingsError

_LONGEST_S = 120.0


class Point(StrEnum):
    CLAIMING = "claiming"  # between the pick and the claim, in the transaction
    BEFORE_CALL = "before_call"
    IN_STREAM = "in_stream"
    AFTER_CALL = "after_call"  # the reply is whole, nothing is committed
    RECORDING = "recording"  # in the transaction that records it
    RECORDED = "recorded"  # T1 is committed
    BEFORE_TOOL = "before_tool"
    AFTER_TOOL = "after_tool"
    RESERVING = "reserving"
    RESERVED = "reserved"
    PARKING = "parking"
    FINISHING = "finishing"
    FINISHED = "finished"


class Pauses:
    """At most one point, and only for the first process that reaches it."""

    def __init__(self, setting: str) -> None:
        name, _, directory = setting.partition(":")
        try:
            self._point = Point(name) if name else None
        except ValueError as error:
            raise SettingsError(f"NIGHTSHIFT_PAUSE_AT: '{name}' is not a point; points: {', '.join(Point)}") from error
        self._directory = Path(directory)

    def inside(self, point: Point) -> bool:
        """Whether somebody may be held there: a statement that needs no transaction then gets one around the point."""
        return self._point is point

    def at(self, point: Point) -> None:
        """Wait here if this is the point and nobody waits or has waited there. Costs nothing otherwise."""
        if self._point is not point:
            return
        try:
            os.close(os.open(self._directory / "taken", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            return
        (self._directory / str(os.getpid())).write_text(point)
        end = time.monotonic() + _LONGEST_S
        while not (self._directory / "go").exists() and time.monotonic() < end:
            time.sleep(0.005)

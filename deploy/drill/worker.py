"""A worker of a drill: the product's own, with the drill's tools beside its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from deploy.drill import effect
from shared.errors import SettingsError
from shared.settings import load
from workers import process
from workers.pause import Pauses

EFFECTS = "DRILL_EFFECTS"  # where the log of effects is


def main(argv: list[str]) -> int:
    try:
        pauses = Pauses(load().pause_at)
    except SettingsError:
        return process.main(argv)  # which says what is wrong
    effect.install(Path(os.environ[EFFECTS]), pauses)
    return process.main(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

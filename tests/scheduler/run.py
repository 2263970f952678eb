"""Starts one of the room's entry points as the console script does."""

from __future__ import annotations

import sys

from scheduler.beat import main as beat
from scheduler.process import main as scheduler

if __name__ == "__main__":
    sys.exit({"scheduler": scheduler, "beat": beat}[sys.argv[1]](sys.argv[2:]))

"""Starts one of the room's entry points as the console script does."""

from __future__ import annotations

import sys

from scheduler import beat, process

if __name__ == "__main__":
    sys.exit({"scheduler": process.main, "beat": beat.main}[sys.argv[1]](sys.argv[2:]))

"""Owns `python -m api.cli`: the client without the console script."""

from __future__ import annotations

import sys

from api.cli.main import main

sys.exit(main(sys.argv[1:]))

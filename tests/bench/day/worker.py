"""The product's worker with a smaller window for one model: `python -m tests.bench.day.worker MODEL=TOKENS …`.

The models at Opus 5.5 prices all hold a million tokens; what a conversation costs in a window of 200,000 at the same
prices is asked here alone, so no setting for it is in the product.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from workers import process
from workers.providers import models


def main(argv: list[str]) -> int:
    for name, _, tokens in (one.partition("=") for one in argv):
        known = models.TABLE[name]
        models.TABLE[name] = replace(known, window=int(tokens), max_output=min(known.max_output, 64_000))
    return process.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

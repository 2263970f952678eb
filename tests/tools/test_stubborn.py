"""Nothing that a job started outlives it: not what ignores signals, and not what left its group and its parent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deploy.drill.rig import slack
from tests.tools import stubborn
from tests.tools.conftest import Bench
from workers.tools.context import ToolStopped

_ROOT = str(Path(__file__).resolve().parents[2])


def test_a_cancel_ends_a_detached_child_that_ignores_signals(bench: Bench) -> None:
    word = stubborn.mark()
    stop = threading.Event()
    bench.cancelled = stop.is_set
    canceller = threading.Thread(target=lambda: (stubborn.begun(word), stop.set()))
    canceller.start()
    with pytest.raises(ToolStopped):
        stubborn.run(bench.context(), word)
    canceller.join()
    assert stubborn.gone(word) < 5


def test_what_a_job_leaves_running_ends_with_it_and_the_job_beside_it_goes_on(bench: Bench) -> None:
    leaves, beside = stubborn.mark(), stubborn.mark()
    stop = threading.Event()
    bench.cancelled = stop.is_set
    other = threading.Thread(target=lambda: _until_stopped(bench, beside))
    other.start()
    stubborn.begun(beside)

    answer = stubborn.run(Bench(bench.workspace, bench.attached, bench.outside).context(), leaves, lives_s=1)

    assert answer.end == 0
    assert stubborn.gone(leaves) < 5
    assert len(stubborn.living(beside)) == 3
    stop.set()
    other.join(10)
    stubborn.gone(beside)


def _until_stopped(bench: Bench, word: str) -> None:
    with pytest.raises(ToolStopped):
        stubborn.run(bench.context(), word)


def test_when_the_worker_is_killed_a_detached_child_goes_too(bench: Bench) -> None:
    word = stubborn.mark()
    script = (
        "import sys, time, json; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from tests.tools import stubborn; from workers.tools.context import ToolContext;"
        "from shared.boottime import boottime;"
        "context = ToolContext('s', 't', 1, 0, Path(sys.argv[2]), None, lambda: False, boottime() + 60);"
        "stubborn.run(context, json.loads(sys.argv[3]))"
    )
    # The word is wrapped, so that the worker itself is not taken for one of them.
    arguments = [sys.executable, "-c", script, _ROOT, str(bench.workspace), json.dumps(word)]
    with subprocess.Popen(arguments) as worker:
        stubborn.begun(word)
        worker.kill()
    began = time.monotonic()
    stubborn.gone(word)
    assert time.monotonic() - began < 5 * slack()

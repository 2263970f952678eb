"""What our own reading and writing of the wires costs, beside the providers' SDKs doing the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from shared.providers.table import TABLE
from shared.request import assembled, blocks
from shared.request.assembled import Piece, Request
from shared.request.cache_plan import PlanState, place
from tests.bench.figures import Figure, middle
from tests.bench.house import House
from tests.bench.reading import PROVIDERS
from tests.ground import ROOT
from workers.providers.failures import classify
from workers.providers.faults import CallFailed
from workers.providers.params import Params, text

MESSAGES = 100
ROUNDS = 50
EVENTS, CHARS = 25_000, 40
"""Of the answer of 1 MB: as large as a delta of several tokens."""
STREAMS, A_SECOND, SECONDS = 100, 50, 10
TOOLS = '[{"name":"look","description":"looks","input_schema":{"type":"object","properties":{}}}]'


def measure(_: House) -> list[Figure]:
    figures = [_conversion(wire, provider) for wire, provider in PROVIDERS.items()]
    figures.append(_classification())
    with _server() as url:
        figures += [_large(url, wire) for wire in PROVIDERS]
        figures += [_many(url, wire) for wire in PROVIDERS]
    return figures


def _conversation(messages: int) -> Request:
    made = assembled.begin(
        TOOLS, blocks.join([blocks.text("You are brief. " * 200)]), stable_proved=True, with_reasoning=True, newest=0
    )
    for at in range(1, messages + 1):
        made = assembled.append(made, [_piece(at)], at)
    return made


def _piece(at: int) -> Piece:
    """A turn with a tool, over and over: words, a call, its result."""
    match at % 4:
        case 1:
            return Piece(at, "user", (blocks.text(f"{at}: what is there? " + "word " * 40),))
        case 2:
            return Piece(at, "assistant", (blocks.tool_use(f"call_{at}", "look", '{"path":"a/b/c.txt","line":1}'),))
        case 3:
            return Piece(at, "user", (blocks.tool_result(f"call_{at - 1}", "line\n" * 200, is_error=False),))
        case _:
            return Piece(at, "assistant", (blocks.text("There is " + "word " * 60),))


def _conversion(wire: str, provider: str) -> Figure:
    """Rows that stand in memory to the bytes of one more call; `baseline`: the JSON of the same body as dicts, which is
    what an SDK does with it, without having converted anything."""
    to = TABLE[provider]
    head = text(Params("m-1", "s", stream=True, shared="d" * 64, max_tokens=500), to)
    grown = [_conversation(MESSAGES + more) for more in range(ROUNDS)]
    body = place(grown[0], PlanState(route=to.route, dialect=to.dialect)).body(head)
    spent: list[float] = []
    dumped: list[float] = []
    for one in grown[1:]:
        at = time.process_time()
        body = place(one, PlanState(route=to.route, dialect=to.dialect)).body(head)
        spent.append((time.process_time() - at) * 1_000)
        told = json.loads(body)
        at = time.process_time()
        json.dumps(told, ensure_ascii=False, separators=(",", ":"))
        dumped.append((time.process_time() - at) * 1_000)
    note = f"{MESSAGES} messages, {len(body) / 1_000:.0f} kB; processor time"
    return Figure(f"conversion, {wire}", middle(spent), "ms", middle(dumped), "dumping it", note=note)


def _classification() -> Figure:
    error = CallFailed(
        "the provider ended the call", code="http_400", http_status=400, kind="invalid_request_error",
        said="messages.0: something that no row of the table has words for " * 5,
    )  # fmt: skip
    at = time.process_time()
    for _ in range(ROUNDS * 20):
        classify(error)
    spent = (time.process_time() - at) / (ROUNDS * 20) * 1_000_000
    return Figure("classification of an error", spent, "us", note="one that the last row of the table fits")


@contextmanager
def _server() -> Generator[str]:
    words = [sys.executable, "-m", "tests.bench.streaming"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


def _read(url: str, wire: str, model: str, streams: int) -> dict[str, dict[str, Any]]:
    """Both, one after the other, each in a process of its own."""
    read: Callable[[str], dict[str, Any]] = lambda who: json.loads(  # noqa: E731 - named for what it gives
        subprocess.run(
            [sys.executable, "-m", "tests.bench.reading", who, wire, url, model, str(streams)],
            stdout=subprocess.PIPE, check=True, cwd=ROOT, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        ).stdout
    )  # fmt: skip
    return {who: read(who) for who in ("ours", "sdk")}


def _large(url: str, wire: str) -> Figure:
    came = _read(url, wire, f"words-{EVENTS}-0-{CHARS}", 1)
    assert {one["chars"] for one in came.values()} == {EVENTS * CHARS}, came
    note = f"{EVENTS:,} events, {EVENTS * CHARS / 1e6:.1f} MB of words"
    name = f"a streamed answer of 1 MB, {wire}"
    return Figure(name, came["ours"]["cpu_s"], "s of a core", came["sdk"]["cpu_s"], "the SDK", note=note, detail=came)


def _many(url: str, wire: str) -> Figure:
    came = _read(url, wire, f"words-{round(A_SECOND * SECONDS)}-{1_000 // A_SECOND}-4", STREAMS)
    assert {one["ended"] for one in came.values()} == {STREAMS}, came
    cores = {who: one["cpu_s"] / SECONDS for who, one in came.items()}  # also where the machine made it take longer
    walls = ", ".join(f"{who} {one['wall_s']:.1f} s" for who, one in came.items())
    note = f"for {SECONDS} s at {A_SECOND} events a second each; it took {walls}"
    return Figure(f"{STREAMS} streams, {wire}", cores["ours"], "cores", cores["sdk"], "the SDK", note=note, detail=came)

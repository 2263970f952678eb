"""What everything is measured against: a loop as short as one can write it, with the same SDK, tool and server.

`messages.create(stream=True)` with dicts, the history in a list, nothing stored. Marks as the documentation shows them:
one at the system prompt, one at the newest block.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anthropic
import httpx2
import orjson

from shared.boottime import boottime
from workers.tools import dispatch
from workers.tools.context import ToolContext

MARK = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Bare:
    client: anthropic.Anthropic
    model: str
    system: str
    tools: list[dict[str, Any]]
    workspace: Path

    def turn(self, history: list[dict[str, Any]], text: str, session: str) -> int:
        """One turn, to its words. Returns its steps; `history` grows."""
        history.append({"role": "user", "content": [{"type": "text", "text": text}]})
        steps = 0
        while True:
            steps += 1
            blocks, stop = self.call(history, session)
            history.append({"role": "assistant", "content": blocks})
            if stop != "tool_use":
                return steps
            results = [self.run(block, session, steps) for block in blocks if block["type"] == "tool_use"]
            history.append({"role": "user", "content": results})

    def call(self, history: list[dict[str, Any]], session: str) -> tuple[list[dict[str, Any]], str | None]:
        newest = history[-1]["content"][-1]
        newest["cache_control"] = MARK
        blocks: list[dict[str, Any]] = []
        parts: list[str] = []
        stop: str | None = None
        create: Any = self.client.messages.create
        for event in create(
            model=self.model, max_tokens=8192, stream=True, messages=history, tools=self.tools,
            system=[{"type": "text", "text": self.system, "cache_control": MARK}], metadata={"user_id": session},
        ):  # fmt: skip
            match event.type:
                case "content_block_start":
                    blocks.append(event.content_block.to_dict())
                    parts = []
                case "content_block_delta":
                    parts.append(event.delta.text if event.delta.type == "text_delta" else event.delta.partial_json)
                case "content_block_stop":
                    block, whole = blocks[-1], "".join(parts)
                    block["text" if block["type"] == "text" else "input"] = (
                        whole if block["type"] == "text" else orjson.loads(whole or "{}")
                    )
                case "message_delta":
                    stop = event.delta.stop_reason
                case _:
                    pass
        del newest["cache_control"]
        return [{k: v for k, v in block.items() if v is not None} for block in blocks], stop

    def run(self, block: dict[str, Any], session: str, step: int) -> dict[str, Any]:
        context = ToolContext(session, "bare", step, 1, self.workspace, None, lambda: False, boottime() + 60)
        result = dispatch.run_one(context, block["name"], orjson.dumps(block["input"]).decode())
        return {
            "type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": result.text}],
            "is_error": result.is_error,
        }  # fmt: skip


def open_bare(url: str, model: str, prefix: dict[str, Any], workspace: Path) -> Bare:
    limits = httpx2.Limits(max_connections=1_000, max_keepalive_connections=1_000)
    http = httpx2.Client(limits=limits, timeout=90)
    client = anthropic.Anthropic(api_key="bench", base_url=url, max_retries=0, timeout=90, http_client=http)
    return Bare(client, model, prefix["system"], prefix["tools"], workspace)


def at_once(bare: Bare, count: int, text: str) -> dict[str, float]:
    """`count` threads, a turn each. Seconds of wall, and bytes of memory a turn half way."""
    gate = threading.Barrier(count + 1)
    errors: list[BaseException] = []

    def one() -> None:
        gate.wait()
        try:
            bare.turn([], text, str(uuid4()))
        except Exception as error:  # noqa: BLE001 - told below: a baseline that fails is no baseline
            errors.append(error)

    before = _rss()
    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    gate.wait()
    began, cpu = time.monotonic(), time.process_time()
    peak = before
    for thread in threads:
        while thread.is_alive():
            thread.join(0.25)
            peak = max(peak, _rss())
    if errors:
        raise errors[0]
    return {
        "wall_s": time.monotonic() - began,
        "cpu_s": time.process_time() - cpu,
        "bytes_a_turn": (peak - before) / count,
    }


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096


def main(argv: list[str]) -> int:
    """As a process of its own, so that its GIL is its own: a JSON of url, model, prefix, count and rounds on stdin."""
    asked = cast("dict[str, Any]", orjson.loads(sys.stdin.buffer.read()))
    with tempfile.TemporaryDirectory(prefix="ns-bare-") as folder:
        bare = open_bare(asked["url"], asked["model"], asked["prefix"], Path(folder))
        bare.turn([], "warm up", str(uuid4()))
        found = [at_once(bare, asked["count"], asked["text"]) for _ in range(asked["rounds"])]
    sys.stdout.buffer.write(orjson.dumps(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

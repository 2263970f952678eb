"""One client that reads streams, as a program, so that its processor time is its own:
`python -m tests.bench.reading ours|sdk WIRE URL MODEL STREAMS` prints `{"cpu_s", "wall_s", "chars"}` as JSON.

Each way imports only its own: an SDK takes a second to import, and a dozen of these run one after another.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2

PROVIDERS = {
    "anthropic": "anthropic",
    "chat_completions": "azure",
    "responses": "openai",
    "bedrock_converse": "bedrock",
}
Reads = Callable[[str], int]


def ours(name: str, url: str) -> Reads:
    from shared.providers.resolve import checked_url
    from shared.providers.table import TABLE
    from workers.providers import wire
    from workers.providers.replies import TextDelta

    known = TABLE[PROVIDERS[name]]
    to = replace(known, base_url=checked_url(url, known.wire))
    client = wire.open_client(wire.Provider(to.base_url, "k", declared=to))

    def read(model: str) -> int:
        chars = 0

        def sink(delta: object) -> None:
            nonlocal chars
            if isinstance(delta, TextDelta):
                chars += len(delta.text)

        body = json.dumps({"model": model, "max_tokens": 1_000_000, "stream": True}).encode()
        wire.stream(client, body, sink=sink, cancel=wire.Cancel(), target=wire.Target(model))
        return chars

    return read


def sdk(name: str, url: str) -> Reads:
    """As its documentation shows it, each event looked at for its words."""
    if name == "bedrock_converse":
        return _boto3(url)
    http = httpx2.Client(limits=httpx2.Limits(max_connections=1_000, max_keepalive_connections=1_000), timeout=600)
    said = [{"role": "user", "content": "go"}]
    if name == "anthropic":
        import anthropic

        call: Any = anthropic.Anthropic(api_key="k", base_url=url, http_client=http).messages.create
        return lambda model: sum(
            len(event.delta.text)
            for event in call(model=model, max_tokens=20_000, messages=said, stream=True)
            if event.type == "content_block_delta"
        )
    import openai

    made = openai.OpenAI(api_key="k", base_url=f"{url}/v1", http_client=http)
    if name == "responses":
        return lambda model: sum(
            len(event.delta)
            for event in made.responses.create(model=model, input="go", stream=True)
            if event.type == "response.output_text.delta"
        )
    chat: Any = made.chat.completions.create
    return lambda model: sum(
        len(event.choices[0].delta.content or "")
        for event in chat(model=model, messages=said, stream=True)
        if event.choices
    )


def _boto3(url: str) -> Reads:
    config: Any = importlib.import_module("botocore.config").Config(max_pool_connections=1_000)
    made: Any = importlib.import_module("boto3").client(
        "bedrock-runtime", endpoint_url=url, region_name="eu-west-1", config=config, aws_access_key_id="k",
        aws_secret_access_key="k",
    )  # fmt: skip
    said = [{"role": "user", "content": [{"text": "go"}]}]
    return lambda model: sum(
        len(event["contentBlockDelta"]["delta"]["text"])
        for event in made.converse_stream(modelId=model, messages=said)["stream"]
        if "contentBlockDelta" in event
    )


def main(argv: list[str]) -> int:
    who, name, url, model, streams = argv
    read = (ours if who == "ours" else sdk)(name, url)
    read("words-3-0-4")  # what is loaded and built once
    chars: list[int] = []
    threads = [threading.Thread(target=lambda: chars.append(read(model))) for _ in range(int(streams))]
    cpu, wall = time.process_time(), time.monotonic()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    told = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall, "chars": sum(chars)}
    print(json.dumps(told | {"ended": len(chars)}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Each wire, streamed and whole, through the same faults: one table of what comes of them (`-s` prints it), beside what
the providers' own SDKs make of the same bytes; and the rehearsal provider, read by those SDKs."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
import urllib3

from shared.providers.resolve import checked_url
from shared.providers.table import TABLE
from shared.request import blocks
from tests.providers.caller import client_of
from tests.providers.faulty import FAULTS, HTTP, Fault, table
from tests.providers.raw_server import RawServer, serving
from tests.providers.speaking import SPEECHES
from tests.providers.test_wires_with_rehearsal import Talk, at
from tests.rehearsal.served import Served, serve
from workers.providers import wire
from workers.providers.failures import classify
from workers.providers.replies import Reply

WIRES = [
    ("anthropic", "claude-sonnet-5-5"),
    ("azure", "gpt-6.1-sol"),
    ("openai", "gpt-6.1-sol"),
    ("bedrock", "global.anthropic.claude-sonnet-5-5"),
]
FORMS = ["streamed", "whole"]
PROVIDERS = {
    "anthropic": "anthropic",
    "chat_completions": "azure",
    "responses": "openai",
    "bedrock_converse": "bedrock",
}
LIMITS = {
    "anthropic": "max_tokens", "chat_completions": "max_completion_tokens", "responses": "max_output_tokens",
    "bedrock_converse": "maxTokens",
}  # fmt: skip
FOUND: dict[str, dict[str, str]] = {}
SDKS: dict[str, dict[str, str]] = {}


def told(reply: Reply) -> str:
    """A reply in words: what is not as it usually is, and the calls in it."""
    words = ["reply"]
    if reply.model != "m-1":
        words.append(f"of {reply.model or 'nobody'}")
    if reply.stop_reason not in ("end_turn", "tool_use"):
        words.append(str(reply.stop_reason))
    words += reply.notes
    words += [f"{'unfit:' if one.malformed else ''}{one.name}" for one in reply.tool_calls]
    if not reply.blocks:
        words.append("empty")
    return " ".join(words)


def of_failure(error: wire.CallFailed) -> str:
    """Its kind. What is done about it is one thing, and is said."""
    recovery = classify(error)
    assert (recovery.retry, recovery.fatal, recovery.compress or recovery.spill).count(True) == 1, error.code
    assert error.message
    assert recovery.why
    return recovery.kind if recovery.wait_s is None else f"{recovery.kind} in {recovery.wait_s:g} s"


def ours(client: wire.Client, name: str, *, streamed: bool) -> str:
    body = f'{{"model":"m-1","{LIMITS[name]}":64}}'.encode()
    try:
        target = wire.Target("m-1", streamed=streamed)
        reply = wire.stream(client, body, sink=lambda _: None, cancel=wire.Cancel(), target=target)
    except wire.CallFailed as error:
        return of_failure(error)
    ids = [one.id for one in reply.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(0 < len(one) <= 64 for one in ids)
    return told(replace(reply, model="m-1") if name == "bedrock_converse" else reply)  # which says nothing of it


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    with serving(lambda _: None) as running:
        yield running


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_each_fault_comes_out_as_the_table_says(server: RawServer, name: str, form: str) -> None:
    known = TABLE[PROVIDERS[name]]
    to = replace(known, base_url=checked_url(server.url, known.wire))
    came: dict[str, str] = {}
    for fault in _of(name, form):
        server.acts[:] = [fault.made(SPEECHES[name], form == "streamed")]
        with client_of(server.url, declared=to) as client:  # a connection of its own: faults break them
            came[fault.name] = ours(client, name, streamed=form == "streamed")
    for fault, outcome in came.items():
        FOUND.setdefault(fault, {})[f"{name} {form}"] = outcome
    assert came == {fault.name: fault.outcome(name, form) for fault in _of(name, form)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROVIDERS)
def test_what_the_sdk_refuses_is_no_answer_for_us_either(server: RawServer, name: str, form: str) -> None:
    """The other way round it may be: an SDK takes a clean end in the middle for a whole answer."""
    with httpx2.Client(verify=False, limits=httpx2.Limits(max_keepalive_connections=0)) as http:
        sdk = Sdk(name, server.url, http)
        for fault in _of(name, form):
            server.acts[:] = [fault.made(SPEECHES[name], form == "streamed")]
            came = sdk.reads(stream=form == "streamed")
            SDKS.setdefault(fault.name, {})[f"{name} {form}"] = came
            if fault in HTTP:
                assert came != "reply", fault.name
            elif came != "reply":
                assert not fault.outcome(name, form).startswith("reply"), f"{fault.name}: {came}"


def test_the_table_is_printed_and_has_at_least_sixty_faults_a_wire_and_form() -> None:
    for name in PROVIDERS:
        for form in FORMS:
            assert len(_of(name, form)) >= 60
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    print(f"\n{len(FAULTS)} faults\n{table(FOUND)}\n\nwhat the SDKs make of the same bytes\n{table(SDKS)}")


def _of(name: str, form: str) -> list[Fault]:
    return [fault for fault in FAULTS if name in fault.wires and form in fault.forms]


BOTO: Any = importlib.import_module("botocore.exceptions")  # which has no types
FRAMES: Any = importlib.import_module("botocore.eventstream")
ASKED_OF_BEDROCK: dict[str, Any] = {
    "modelId": "m-1", "messages": [{"role": "user", "content": [{"text": "go"}]}], "inferenceConfig": {"maxTokens": 64},
}  # fmt: skip


def bedrock(url: str) -> Any:
    """boto3's client of the runtime, with an access key, which signs."""
    boto3: Any = importlib.import_module("boto3")
    config: Any = importlib.import_module("botocore.config").Config(retries={"total_max_attempts": 1})
    return boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="eu-west-1", config=config,
        aws_access_key_id="AKIAIOSFODNN7EXAMPLE", aws_secret_access_key="k" * 40,
    )  # fmt: skip


class Sdk:
    """The provider's own client of one wire."""

    def __init__(self, name: str, url: str, http: httpx2.Client) -> None:
        self._name = name
        self._asked: dict[str, Any] = {"model": "m-1"}
        said = [{"role": "user", "content": "go"}]
        if name == "bedrock_converse":
            self._made: Any = bedrock(url)
            self._asked = ASKED_OF_BEDROCK
        elif name == "anthropic":
            self._made = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0, http_client=http)
            self._call: Any = self._made.messages.create
            self._asked |= {"max_tokens": 64, "messages": said}
        else:
            self._made = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, http_client=http)
            chat = name == "chat_completions"
            self._call = self._made.chat.completions.create if chat else self._made.responses.create
            self._asked |= {"messages": said, "max_completion_tokens": 64} if chat else {"input": "go"}

    def reads(self, *, stream: bool) -> str:
        """`reply`, or the error that it raises."""
        try:
            if self._name == "bedrock_converse":
                answer = (self._made.converse_stream if stream else self._made.converse)(**self._asked)
                events = answer["stream"] if stream else ()
            else:
                answer = self._call(**self._asked, stream=stream)
                events = answer if stream else ()
            for _ in events:
                pass
        except (
            BOTO.BotoCoreError,
            BOTO.ClientError,
            FRAMES.ParserError,
            urllib3.exceptions.HTTPError,
            anthropic.AnthropicError,
            openai.OpenAIError,
            httpx2.HTTPError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:
            return type(error).__name__
        return "reply"


# --- the rehearsal provider's own faults ------------------------------------------------------------------------------

RETRIED = (408, 409, 429, 500, 502, 503, 504, 529)
REHEARSED: dict[str, tuple[dict[str, Any], bool]] = {
    # name: (the fault as the provider is told it, whether another try may succeed)
    **{f"HTTP {status}": ({"kind": "status", "status": status}, status in RETRIED) for status in (400, 429, 529)},
    "a 429 that says when": ({"kind": "status", "status": 429, "retry_after": 7}, True),
    "a page with a 502": ({"kind": "html", "status": 502}, True),
    "a redirect": ({"kind": "redirect"}, False),
    "a hang up": ({"kind": "nothing"}, True),
    "too long a prompt": ({"kind": "overflow"}, False),
    "a cut": ({"kind": "cut"}, True),
    "a clean end in the middle": ({"kind": "clean_eof"}, True),
    "no JSON": ({"kind": "garbage"}, True),
    "an error within": ({"kind": "error_event"}, True),
}
WHOLE = {"a clean end in the middle": False, "no JSON": False}
"""Of a whole answer: half a body, or none that is JSON, is no answer of the provider's, and is not asked for again."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.mark.parametrize("streamed", [True, False], ids=FORMS)
@pytest.mark.parametrize(("name", "model"), WIRES, ids=[name for name, _ in WIRES])
def test_every_fault_of_the_rehearsal_provider_says_what_to_do_and_the_next_call_goes_well(
    provider: Served, name: str, model: str, streamed: bool
) -> None:
    to = at(provider, name)
    came: dict[str, bool] = {}
    with client_of(provider.url, declared=to) as client:
        for fault, (told_it, _) in REHEARSED.items():
            provider.control("reset")
            provider.script(replies=[{"text": "a" * 900, "fault": told_it}, {"text": "next"}])
            talk = Talk(to, model, stream=streamed, system="Be brief.")
            talk.add("user", blocks.text("go"))
            with pytest.raises(wire.CallFailed) as caught:
                talk.call(client)
            of_failure(caught.value)
            recovery = classify(caught.value)
            assert recovery.wait_s == (7.0 if fault == "a 429 that says when" else None), fault
            assert recovery.compress is (fault == "too long a prompt"), fault
            came[fault] = recovery.retry
            assert talk.call(client)[0].text == "next", fault
    assert came == {fault: retry for fault, (_, retry) in REHEARSED.items()} | ({} if streamed else WHOLE)


SCRIPT: dict[str, Any] = {
    "thinking": "hm", "text": "a few words",
    "tools": [{"name": "look", "input": {"x": 1}}, {"name": "look", "input": {}}],
}  # fmt: skip
TOOL: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.mark.parametrize("stream", [True, False], ids=FORMS)
def test_the_sdk_of_openai_reads_the_rehearsal_providers_chat_completions(provider: Served, stream: bool) -> None:
    provider.control("reset")
    provider.script(replies=[SCRIPT])
    with openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as sdk:
        asked: Any = {
            "model": "gpt-6.1-sol", "messages": [{"role": "user", "content": "go"}],
            "tools": [{"type": "function", "function": {"name": "look", "parameters": TOOL}}],
        }  # fmt: skip
        if stream:
            chat: Any = sdk.chat.completions
            with chat.stream(**asked, stream_options={"include_usage": True}) as events:
                got: Any = events.get_final_completion()
        else:
            got = cast("Any", sdk.chat.completions.create)(**asked)
    (choice,) = got.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "a few words"
    calls: Any = choice.message.tool_calls
    assert [(one.function.name, one.function.arguments) for one in calls] == [("look", '{"x":1}'), ("look", "{}")]
    assert got.usage is not None
    assert got.usage.total_tokens == got.usage.prompt_tokens + got.usage.completion_tokens > 0


@pytest.mark.parametrize("stream", [True, False], ids=FORMS)
def test_the_sdk_of_openai_reads_the_rehearsal_providers_responses(provider: Served, stream: bool) -> None:
    provider.control("reset")
    provider.script(replies=[SCRIPT])
    with openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as sdk:
        asked: Any = {
            "model": "gpt-6.1-sol", "input": "go", "store": False,
            "tools": [{"type": "function", "name": "look", "parameters": TOOL, "strict": False}],
        }  # fmt: skip
        if stream:
            responses: Any = sdk.responses
            with responses.stream(**asked) as events:
                got: Any = events.get_final_response()
        else:
            got = cast("Any", sdk.responses.create)(**asked)
    assert (got.status, got.output_text) == ("completed", "a few words")
    calls: list[Any] = [one for one in got.output if one.type == "function_call"]
    assert [(one.name, one.arguments) for one in calls] == [("look", '{"x":1}'), ("look", "{}")]
    assert got.usage is not None
    assert got.usage.total_tokens == got.usage.input_tokens + got.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        ({"kind": "status", "status": 429}, openai.RateLimitError),
        ({"kind": "status", "status": 401}, openai.AuthenticationError),
        ({"kind": "overflow"}, openai.BadRequestError),
        ({"kind": "cut"}, (openai.APIConnectionError, httpx2.HTTPError)),
    ],
)
def test_the_sdk_of_openai_raises_what_it_knows_for_the_rehearsal_providers_faults(
    provider: Served, fault: dict[str, Any], raised: Any
) -> None:
    with openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as sdk:
        for name in ("chat", "responses"):
            provider.control("reset")
            provider.script(replies=[{"text": "a" * 900, "fault": fault}])
            asked: Any = {"model": "gpt-6.1-sol", "stream": True}
            chat, said = name == "chat", [{"role": "user", "content": "go"}]
            asked |= {"messages": said} if chat else {"input": said}
            call: Any = sdk.chat.completions.create if chat else sdk.responses.create
            with pytest.raises(raised) as caught:
                list(call(**asked))
            if fault["kind"] == "overflow":
                assert getattr(caught.value, "code", None) == "context_length_exceeded"


def test_an_error_within_is_raised_by_the_sdk_on_one_wire_and_an_event_on_the_other(provider: Served) -> None:
    """So a program that only waits for words takes it for a short answer."""
    said = [{"role": "user", "content": "go"}]
    with openai.OpenAI(api_key="k", base_url=f"{provider.url}/v1", max_retries=0) as sdk:
        provider.control("reset")
        provider.script(replies=[{"text": "a" * 900, "fault": {"kind": "error_event"}}])
        asked: Any = {"model": "gpt-6.1-sol", "stream": True}
        chunks: Any = cast("Any", sdk.chat.completions.create)(**asked, messages=said)
        with pytest.raises(openai.APIError):
            list(chunks)
        provider.control("reset")
        provider.script(replies=[{"text": "a" * 900, "fault": {"kind": "error_event"}}])
        events: list[Any] = list(cast("Any", sdk.responses.create)(**asked, input=said))
    assert events[-1].type in ("error", "response.failed")


# --- boto3 against the rehearsal provider -----------------------------------------------------------------------------

CLAUDE = "global.anthropic.claude-sonnet-5-5"
SPEC = {"toolSpec": {"name": "look", "inputSchema": {"json": TOOL}}}
BEDROCK_ASKED: dict[str, Any] = {
    "modelId": CLAUDE, "messages": [{"role": "user", "content": [{"text": "go"}]}], "toolConfig": {"tools": [SPEC]},
    "system": [{"text": "Be brief. " * 2_000}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
    "requestMetadata": {"session": "0198-s"},
}  # fmt: skip


@pytest.mark.parametrize("stream", [True, False], ids=FORMS)
def test_boto3_reads_the_rehearsal_providers_converse(provider: Served, stream: bool) -> None:
    provider.control("reset")
    provider.script(replies=[SCRIPT, SCRIPT])
    sdk = bedrock(provider.url)
    for nth in range(2):
        content, stop, usage = _heard(sdk.converse_stream(**BEDROCK_ASKED)) if stream else _whole(sdk, BEDROCK_ASKED)
        assert stop == "tool_use"
        thought = content[0]["reasoningContent"]["reasoningText"]
        assert (thought["text"], bool(thought["signature"])) == ("hm", True)
        assert content[1] == {"text": "a few words"}
        calls = [one["toolUse"] for one in content[2:]]
        assert [(one["name"], one["input"]) for one in calls] == [("look", {"x": 1}), ("look", {})]
        cached = usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]
        assert (cached[nth] == 0, cached[1 - nth] > 1_024) == (True, True)
        assert usage["totalTokens"] == usage["inputTokens"] + sum(cached) + usage["outputTokens"]
        assert usage["cacheDetails"] == ([] if nth else [{"ttl": "1h", "inputTokens": cached[1]}])
    told = provider.ledger()
    assert [(one["status"], one["session"]) for one in told] == [(200, "0198-s")] * 2


def _whole(sdk: Any, asked: dict[str, Any]) -> tuple[list[Any], str, Any]:
    got = sdk.converse(**asked)
    return got["output"]["message"]["content"], got["stopReason"], got["usage"]


def _heard(answer: Any) -> tuple[list[Any], str, Any]:
    """A stream, put together as a program that uses boto3 does it."""
    blocks_: dict[int, Any] = {}
    stop, usage = "", None
    for event in answer["stream"]:
        ((kind, told),) = event.items()
        at = told.get("contentBlockIndex")
        if kind == "contentBlockStart":
            blocks_[at] = {"toolUse": {**told["start"]["toolUse"], "input": ""}}
        elif kind == "contentBlockDelta" and "text" in told["delta"]:
            blocks_.setdefault(at, {"text": ""})["text"] += told["delta"]["text"]
        elif kind == "contentBlockDelta" and "toolUse" in told["delta"]:
            blocks_[at]["toolUse"]["input"] += told["delta"]["toolUse"]["input"]
        elif kind == "contentBlockDelta":
            inner = blocks_.setdefault(at, {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}})
            for name, piece in told["delta"]["reasoningContent"].items():
                inner["reasoningContent"]["reasoningText"][name] += piece
        elif kind == "messageStop":
            stop = told["stopReason"]
        elif kind == "metadata":
            usage = told["usage"]
    for one in blocks_.values():
        if "toolUse" in one:
            one["toolUse"]["input"] = json.loads(one["toolUse"]["input"])
    return [blocks_[at] for at in sorted(blocks_)], stop, usage


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"kind": "status", "status": 429}, "ThrottlingException"),
        ({"kind": "status", "status": 401}, "UnrecognizedClientException"),
        ({"kind": "status", "status": 500}, "InternalServerException"),
        ({"kind": "overflow"}, "ValidationException"),
        ({"kind": "error_event", "error_type": "rate_limit_error"}, "throttlingException"),
    ],
    ids=["429", "401", "500", "overflow", "within"],
)
def test_boto3_raises_what_it_knows_for_the_rehearsal_providers_faults(
    provider: Served, fault: dict[str, Any], code: str
) -> None:
    provider.control("reset")
    provider.script(replies=[{"text": "a" * 900, "fault": fault}])
    with pytest.raises(BOTO.ClientError) as caught:
        list(bedrock(provider.url).converse_stream(**BEDROCK_ASKED)["stream"])
    assert caught.value.response["Error"]["Code"] == code


def test_boto3_takes_a_clean_end_in_the_middle_for_a_whole_answer(provider: Served) -> None:
    """So a program that only waits for words takes it for a short one."""
    provider.control("reset")
    provider.script(replies=[{"text": "a" * 900, "fault": {"kind": "clean_eof", "after_chunks": 2}}])
    heard = list(bedrock(provider.url).converse_stream(**BEDROCK_ASKED)["stream"])
    assert heard
    assert not any("messageStop" in one for one in heard)


def test_the_body_of_ours_is_the_one_that_boto3_would_send(provider: Served, server: RawServer) -> None:
    """What we write by hand fits the published shapes: boto3 refuses members that are none, and dumps it to the same
    values at the same address."""
    to = at(provider, "bedrock").of_model(CLAUDE)
    provider.control("reset")
    provider.script(replies=[SCRIPT])
    talk = Talk(to, CLAUDE)
    talk.add("user", blocks.text("go"), PICTURE)
    with client_of(provider.url, declared=to) as client:
        reply, _ = talk.call(client)
    talk.add("user", *(blocks.tool_result(call.id, "a cup", is_error=True) for call in reply.tool_calls))
    told: Any = json.loads(talk.body())
    assert json.dumps(told).count("cachePoint") in (3, 4)
    assert "reasoningContent" in told["messages"][1]["content"][0]
    given = json.loads(json.dumps(told))
    image = given["messages"][0]["content"][1]["image"]
    image["source"]["bytes"] = base64.b64decode(image["source"]["bytes"])
    server.acts[:] = [lambda exchange: exchange.send(EMPTY)]
    server.requests.clear()
    bedrock(server.url).converse(modelId=CLAUDE, **given)
    head, body = server.requests[-1]
    assert json.loads(body) == told
    assert head.split()[1].decode() == f"/model/{CLAUDE}/converse"


EMPTY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
PICTURE = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}'

"""What Bedrock is known to do, and what a request of ours must be there: keys, signatures, cache points, reasoning.

Sources: AWS's pages and botocore's model of the service, and the public issues that `docs/decisions/0035` names.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest

from shared.errors import SettingsError
from shared.models import limits
from shared.providers import aws, resolve
from shared.providers.credentials import credentials, known_keys
from shared.providers.table import TABLE
from shared.request import assembled, blocks, converse, foreign
from shared.request.assembled import Message, Piece, Request
from shared.request.cache_plan import ANTHROPIC, UNMARKED, PlanState, place
from shared.request.dialect import Wire
from shared.request.estimate import factor
from shared.request.marked import Ttl
from shared.settings import Settings, load
from tests.providers.caller import client_of
from tests.providers.raw_server import Exchange, serving
from tests.providers.speaking import frame
from tests.providers.test_quirks import asked, assembly
from workers.providers import aws as frames_of
from workers.providers import events, prices, wire
from workers.providers.assembly import Assembly, BadStream
from workers.providers.converse_reading import ConverseReader, usage
from workers.providers.params import Params, text
from workers.providers.replies import Reasoning, ReasoningDelta, Usage

Json = dict[str, Any]
ID, SECRET, TOKEN = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEXAMPLETOKEN=="
SIGNS = f"{ID}:{SECRET}"
SIGNS_FOR_A_WHILE = f"ASIA{ID[4:]}:{SECRET}:{TOKEN}"
CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
BEDROCK = TABLE["bedrock"]
HOME = "https://bedrock-runtime.eu-west-1.amazonaws.com"
AT = datetime(2026, 11, 30, tzinfo=UTC)
NO = b"HTTP/1.1 400 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


def refuse(exchange: Exchange) -> None:
    body = json.dumps({"message": f"no: {exchange.head!r}"}).encode()
    exchange.send(NO % (len(body), body))


def _sent(key: str) -> tuple[str, dict[str, str], bytes, wire.CallFailed]:
    """What goes out with a key: path, headers, body; and the error, whose words are the request itself."""
    with serving(refuse) as server:
        to = replace(BEDROCK, base_url=server.url)
        client = wire.open_client(wire.Provider(to.base_url, key, to.wire, declared=to))
        with pytest.raises(wire.CallFailed) as caught:
            wire.stream(
                client, b'{"messages":[]}', sink=lambda _: None, cancel=wire.Cancel(), target=wire.Target(CLAUDE)
            )
        wire.close_client(client)
        head, body = server.requests[0]
    first, *lines = head.decode().split("\r\n")
    told = (line.partition(":") for line in lines if line)
    return first.split()[1], {name.lower(): value.strip() for name, _, value in told}, body, caught.value


# --- keys and signatures ----------------------------------------------------------------------------------------------


def test_a_bearer_token_is_a_header_and_the_model_stands_in_the_address() -> None:
    path, headers, _, error = _sent("ABSKQmVkcm9ja0FQSUtleS1EXAMPLE")
    assert path == "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    assert headers["authorization"] == "Bearer ABSKQmVkcm9ja0FQSUtleS1EXAMPLE"
    assert "x-amz-date" not in headers
    assert "ABSK" not in error.said + error.message  # which some servers echo


@pytest.mark.parametrize("key", [SIGNS, SIGNS_FOR_A_WHILE], ids=["for long", "for a while"])
def test_an_access_key_signs_each_request_and_its_secret_goes_nowhere(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    path, headers, body, error = _sent(key)
    found = aws.access(key)
    assert found is not None
    scheme, _, told = headers["authorization"].partition(" ")
    parts = dict(part.split("=", 1) for part in told.split(", "))
    date = headers["x-amz-date"]
    scope = f"{date[:8]}/eu-central-1/bedrock/aws4_request"
    assert (scheme, parts["Credential"]) == ("AWS4-HMAC-SHA256", f"{found.id}/{scope}")
    signed = parts["SignedHeaders"].split(";")
    assert {"host", "x-amz-date"} <= set(signed)
    assert headers.get("x-amz-security-token") == found.token
    # By the published steps, without the library that made it.
    listed = "".join(f"{name}:{headers[name]}\n" for name in signed)
    digest = hashlib.sha256(body).hexdigest()
    asked_for = "\n".join(("POST", quote(path, safe="/-_.~"), "", listed, parts["SignedHeaders"], digest))
    to_sign = "\n".join(("AWS4-HMAC-SHA256", date, scope, hashlib.sha256(asked_for.encode()).hexdigest()))
    made = b"AWS4" + found.secret.encode()
    for part in (date[:8], "eu-central-1", "bedrock", "aws4_request"):
        made = hmac.digest(made, part.encode(), "sha256")
    assert parts["Signature"] == hmac.digest(made, to_sign.encode(), "sha256").hex()
    assert SECRET not in f"{headers} {error.said} {error.message} {found!r}"
    assert TOKEN not in f"{error.said} {error.message} {found!r}"


def test_a_signature_without_a_region_and_half_an_access_key_are_refused_and_shown_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for key, word in ((SIGNS, "AWS_REGION"), (f"{ID}:short", "id:secret"), (f"ASIA{ID[4:]}:{SECRET}", "id:secret")):
        with pytest.raises(SettingsError, match=word) as caught:
            _sent(key)
        assert key.partition(":")[2] not in str(caught.value)
    at = "https://vpce-1a2b.bedrock-runtime.us-gov-west-1.vpce.amazonaws.com"
    assert aws.region(at, {}) == "us-gov-west-1"
    assert aws.region("https://bedrock-runtime-fips.ca-central-1.amazonaws.com", {}) == "ca-central-1"
    assert aws.region("https://proxy.example.com", {"AWS_DEFAULT_REGION": "eu-west-3"}) == "eu-west-3"


def test_keys_are_of_the_environment_or_of_files_and_a_pool_of_them_has_both_kinds(tmp_path: Path) -> None:
    folder = tmp_path / "keys" / "bedrock"
    folder.mkdir(parents=True)
    (folder / "spare").write_text(f"{SIGNS_FOR_A_WHILE}\n")
    (folder / "spare").chmod(0o600)
    environ = {
        "AWS_BEARER_TOKEN_BEDROCK": "ABSK1", "AWS_BEARER_TOKEN_BEDROCK_2": "ABSK2", "AWS_ACCESS_KEY_ID": ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip
    settings = Settings(home=tmp_path, fallbacks="*=bedrock:anthropic.claude-sonnet-5-5",
                        providers=cast("Any", {"bedrock": {"base_url": HOME}}))  # fmt: skip
    found = credentials(settings, "bedrock", environ)
    assert [one.key for one in found] == ["ABSK1", "ABSK2", SIGNS, SIGNS_FOR_A_WHILE]
    assert not any(SECRET in f"{one!r} {one.id}" for one in found)
    assert {SECRET, TOKEN, "ABSK1"} <= set(known_keys(settings, environ))  # what no text of ours may hold
    assert credentials(settings, "mistral", environ) == ()


def test_the_process_s_own_key_is_the_bearer_token_else_the_access_key() -> None:
    told = {"NIGHTSHIFT_PROVIDER": "bedrock"}
    both = {**told, "AWS_BEARER_TOKEN_BEDROCK": "ABSK1", "AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    assert load(both).provider_key == "ABSK1"
    assert load({**both, "AWS_BEARER_TOKEN_BEDROCK": ""}).provider_key == SIGNS
    assert load({**told, "AWS_ACCESS_KEY_ID": ID}).provider_key == ""
    assert load({**both, "NIGHTSHIFT_PROVIDER": "anthropic"}).provider_key == ""
    with pytest.raises(SettingsError, match="NIGHTSHIFT_PROVIDER_BASE_URL"):  # which region is the team's to say
        resolve.declared(load(both))


def test_without_the_extra_a_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("botocore", "boto3")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", cast("Any", None))
    with (
        pytest.raises(SettingsError, match=r"nightshift\[bedrock\]") as caught,
        client_of("http://127.0.0.1:9", "bedrock_converse"),
    ):
        pass
    assert caught.value.code == "bedrock_extra_missing"
    with client_of("http://127.0.0.1:9", "anthropic"), client_of("http://127.0.0.1:9", "chat_completions"):
        pass  # the others need none of it


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "marks", "ttl"),
    [
        ("anthropic.claude-sonnet-5-5", True, Ttl.HOUR),
        ("global.anthropic.claude-opus-4-8-v1:0", True, Ttl.HOUR),
        (CLAUDE, True, Ttl.HOUR),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", True, Ttl.MINUTES),
        ("anthropic.claude-sonnet-4-20250514-v1:0", True, Ttl.MINUTES),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", True, Ttl.MINUTES),
        ("anthropic.claude-3-haiku-20240307-v1:0", False, Ttl.MINUTES),
        ("us.amazon.nova-pro-v1:0", False, Ttl.MINUTES),
        ("meta.llama3-1-70b-instruct-v1:0", False, Ttl.MINUTES),
        ("arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123", False, Ttl.MINUTES),
        (f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{CLAUDE}", True, Ttl.HOUR),
    ],
)
def test_cache_points_are_sent_to_models_that_take_them_and_for_no_longer_than_they_do(
    model: str, marks: bool, ttl: Ttl
) -> None:
    to = BEDROCK.of_model(model)
    assert (to.route.marks, to.route.max_ttl) == (marks, ttl)
    assert BEDROCK.route == UNMARKED
    assert TABLE["anthropic"].of_model(model).route == ANTHROPIC


def test_windows_are_those_of_the_model_by_whatever_name_and_prices_those_of_the_region() -> None:
    assert limits(CLAUDE) == limits("claude-sonnet-4-5")
    assert factor(CLAUDE) == factor("claude-sonnet-4-5") != factor("global.anthropic.claude-opus-5-5")
    assert limits("global.anthropic.claude-opus-5-5").window == 1_000_000
    assert limits(f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{CLAUDE}").known
    assert not limits("us.amazon.nova-pro-v1:0").known
    used = Usage(input=1_000_000, output=1_000_000, cache_read=1_000_000, cache_write_5m=1_000_000)
    at_home, away = (
        prices.price(f"{where}.anthropic.claude-sonnet-5-5", used, AT, provider="bedrock").usd
        for where in ("global", "eu")
    )
    assert at_home is not None
    assert away is not None
    assert float(away / at_home) == pytest.approx(1.1)
    nova = prices.worst("us.amazon.nova-pro-v1:0", 1_000, 100, at=AT, provider="bedrock")
    assert nova is not None  # nothing is due for marks that are never sent
    assert (
        prices.worst("arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", 9, 9, at=AT, provider="bedrock")
        is None
    )


# --- what goes out ----------------------------------------------------------------------------------------------------


def _request(*messages: tuple[str, tuple[str, ...]], tools: bool = True, system: str = "Be brief.") -> Request:
    listed = '[{"name":"look","description":"","input_schema":{"type":"object","properties":{}}}]'
    told = blocks.join([blocks.text(system)] if system else [])
    floor = assembled.begin(listed if tools else "", told, stable_proved=True, with_reasoning=True, newest=0)
    pieces = [Piece(at, role, texts) for at, (role, texts) in enumerate(messages, 1)]
    return assembled.append(floor, pieces, len(pieces))


def _body(request: Request, ttl: Ttl = Ttl.MINUTES, model: str = CLAUDE, **more: Any) -> Json:
    to = BEDROCK.of_model(model)
    state = PlanState(route=to.route, dialect=to.dialect, ttl=ttl, **more)
    return json.loads(place(request, state).body(text(Params(model, "0198-s", max_tokens=64), to)))


SCHEMA: Json = {"type": "object", "properties": {}}
SPOKEN = (("user", (blocks.text("go"),)),)
CALLED = (
    *SPOKEN,
    ("assistant", (blocks.tool_use("a", "look", '{"n":1e2}'), blocks.tool_use("b", "look", "{}"))),
    ("user", (blocks.tool_result("a", "x", is_error=True), blocks.tool_result("b", ""))),
    ("user", (blocks.text("and now?"),)),
)


def test_a_request_has_no_model_no_stream_and_no_user_but_whose_session_it_is() -> None:
    body = _body(_request(*SPOKEN), model="meta.llama3-1-70b-instruct-v1:0")
    assert body == {
        "inferenceConfig": {"maxTokens": 64},
        "requestMetadata": {"session": "0198-s"},
        "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}]},
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "go"}]}],
    }  # fmt: skip


@pytest.mark.parametrize(("ttl", "model", "point"), [
    (Ttl.MINUTES, CLAUDE, {"type": "default"}),
    (Ttl.HOUR, CLAUDE, {"type": "default", "ttl": "1h"}),
    (Ttl.HOUR, "us.anthropic.claude-opus-4-1-20250805-v1:0", {"type": "default"}),
])  # fmt: skip
def test_cache_points_are_blocks_behind_what_they_mark_and_at_most_four(ttl: Ttl, model: str, point: Json) -> None:
    body = _body(_request(*CALLED), ttl, model, last_breakpoint_message_id=1)
    assert body["system"] == [{"text": "Be brief."}, {"cachePoint": point}]
    assert body["messages"][0]["content"] == [{"text": "go"}, {"cachePoint": point}]
    assert body["messages"][-1]["content"][-2:] == [{"text": "and now?"}, {"cachePoint": point}]
    assert 0 < json.dumps(body).count("cachePoint") <= 4
    alone = _body(_request(*SPOKEN, system=""), ttl, model)
    assert alone["toolConfig"]["tools"][-1] == {"cachePoint": point}
    assert "system" not in alone


def test_calls_keep_the_model_s_own_text_and_results_say_that_they_failed_in_words() -> None:
    request = _request(*CALLED)
    state = PlanState(route=UNMARKED, dialect=BEDROCK.dialect)
    assert b'{"toolUse":{"toolUseId":"a","name":"look","input":{"n":1e2}}}' in place(request, state).body("")
    results = _body(request)["messages"][2]["content"][:2]
    assert [one["toolResult"]["content"] for one in results] == [
        [{"text": "[the tool failed] x"}],
        [{"text": "(no output)"}],
    ]
    # `status` is taken by two makers' models alone, and refused by others.
    assert all("status" not in one["toolResult"] for one in results)


def test_a_past_with_calls_goes_out_with_a_tool_also_where_none_may_be_called() -> None:
    """ "The toolConfig field must be defined when using toolUse and toolResult content blocks." """
    (only,) = _body(_request(*CALLED, tools=False))["toolConfig"]["tools"]
    assert only["toolSpec"]["name"] == "no_tool"
    assert "toolConfig" not in _body(_request(*SPOKEN, tools=False))
    quoted = (("user", (blocks.text('{"toolUse":{"name":"x"}}'),)),)
    assert "toolConfig" not in _body(_request(*quoted, tools=False))


def test_a_blank_system_prompt_is_left_out() -> None:
    assert "system" not in _body(_request(*SPOKEN, system=" \n"))


def test_pictures_are_bytes_in_a_known_format_and_follow_the_results_that_hold_them() -> None:
    shown = '{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/"}}'
    far = '{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}'
    odd = '{"type":"image","source":{"type":"base64","media_type":"image/tiff","data":"SUkq"}}'
    held = f'{{"type":"tool_result","tool_use_id":"a","content":[{shown}]}}'
    said = Message("user", (held, blocks.tool_result("b", "x"), blocks.text("go"), shown, far, odd), 1)
    content = json.loads(converse.written(said, BEDROCK.dialect, {})[0])["content"]
    picture = {"image": {"format": "jpeg", "source": {"bytes": "/9j/"}}}
    assert [next(iter(one)) for one in content] == [
        "toolResult",
        "toolResult",
        "image",
        "text",
        "image",
        "text",
        "text",
    ]
    assert content[2] == content[4] == picture
    assert content[5] == content[6] == {"text": converse.NO_PICTURE}


def test_reasoning_goes_back_to_bedrock_alone_and_no_other_s_to_it() -> None:
    value = {"reasoningText": {"text": "hm", "signature": "s=="}}
    mine = foreign.seal("bedrock", "reasoningContent", value)
    others = foreign.seal("openai", "item", {"type": "reasoning"})
    native = '{"type":"thinking","thinking":"hm","signature":"t=="}'
    said = Message("assistant", (mine, others, native, blocks.text("yes")), 1)
    (sent,) = converse.written(said, BEDROCK.dialect, {})
    assert json.loads(sent)["content"] == [{"reasoningContent": value}, {"text": "yes"}]


# --- what comes back --------------------------------------------------------------------------------------------------


def of(kind: str, **told: Any) -> Json:
    return {**told, "type": kind}


def at(index: int, **delta: Any) -> Json:
    return of("contentBlockDelta", contentBlockIndex=index, delta=delta)


def stop(index: int) -> Json:
    return of("contentBlockStop", contentBlockIndex=index)


BEGIN = of("messageStart", role="assistant")
LAST = of("metadata", usage={"inputTokens": 9, "outputTokens": 3, "totalTokens": 12}, metrics={"latencyMs": 1})


def read(*told: Json, reason: str = "end_turn") -> Assembly:
    made = assembly()
    reader = ConverseReader(made, "bedrock")
    for one in (BEGIN, *told, of("messageStop", stopReason=reason), LAST):
        reader.feed(one)
    return made


def test_signed_and_redacted_reasoning_is_kept_as_it_came_and_unsigned_is_shown_alone() -> None:
    thought = (at(0, reasoningContent={"text": "h"}), at(0, reasoningContent={"text": "m"}))
    signed = read(*thought, at(0, reasoningContent={"signature": "s=="}), stop(0), at(1, text="yes"), stop(1))
    hidden = read(
        at(0, reasoningContent={"redactedContent": "YQ=="}),
        at(0, reasoningContent={"redactedContent": "Yg=="}),
        stop(0),
    )
    shown: list[Any] = []
    bare = assembly(shown)
    reader = ConverseReader(bare, "bedrock")
    for one in (BEGIN, *thought, stop(0), of("messageStop", stopReason="end_turn"), LAST):
        reader.feed(one)
    kept = [
        json.loads(one.raw_block_text)
        for made in (signed, hidden, bare)
        for one in made.content()
        if isinstance(one, Reasoning)
    ]
    assert [one["value"] for one in kept] == [
        {"reasoningText": {"text": "hm", "signature": "s=="}},
        {"redactedContent": "YWI="},
    ]
    assert all((one["by"], one["key"]) == ("bedrock", "reasoningContent") for one in kept)
    assert "".join(one.text for one in shown if isinstance(one, ReasoningDelta)) == "hm"


def test_texts_begin_without_a_start_and_indexes_may_have_gaps() -> None:
    call = of("contentBlockStart", contentBlockIndex=4, start={"toolUse": {"toolUseId": "a.b:c", "name": "look"}})
    made = read(
        at(1, text="I look"), stop(1), call, at(4, toolUse={"input": '{"x":'}), at(4, toolUse={"input": "1}"}), stop(4)
    )
    ((made_id, name, arguments),) = asked(made)
    assert (name, arguments) == ("look", '{"x":1}')
    assert made_id.startswith("toolu_")  # an id that other wires would refuse gets one that all take


@pytest.mark.parametrize("told", [
    (stop(0),), (at(1, text="a"), at(0, text="b")), (at(0, text="a"), stop(0), at(0, text="b")),
    (at(0, toolUse={"input": "{}"}),), (at(0, text="a"), at(0, reasoningContent={"text": "b"})), (at(0, text=7),),
    (of("contentBlockDelta", delta={"text": "a"}),), (of("messageStart", role="assistant"),),
], ids=range(8))  # fmt: skip
def test_events_out_of_their_order_are_no_answer(told: tuple[Json, ...]) -> None:
    with pytest.raises(BadStream):
        read(*told)


@pytest.mark.parametrize(("told", "found"), [
    ({"inputTokens": 9, "outputTokens": 3, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 7,
      "cacheDetails": [{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 3}]}, (9, 5, 3, 4)),
    ({"inputTokens": 9, "outputTokens": 3, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 7}, (9, 5, 7, 0)),
    ({"inputTokens": 9, "outputTokens": 3, "cacheWriteInputTokens": None, "cacheDetails": None}, (9, 0, 0, 0)),
], ids=["by time to live", "as one", "nothing cached"])  # fmt: skip
def test_usage_is_disjoint_as_it_is_told(told: Json, found: tuple[int, ...]) -> None:
    made = assembly()
    reader = ConverseReader(made, "bedrock")
    for one in (
        BEGIN,
        at(0, text="yes"),
        stop(0),
        of("messageStop", stopReason="end_turn"),
        of("metadata", usage=told),
    ):
        reader.feed(one)
    used, note = made.usage()
    assert note is None
    assert used is not None
    assert (used.input, used.cache_read, used.cache_write_5m, used.cache_write_1h) == found
    assert usage({"inputTokens": 1}) is None


def test_frames_are_the_same_events_however_they_are_cut() -> None:
    sent = [frame("messageStart", {"role": "assistant"}), frame("contentBlockDelta", {"delta": {"text": "ü" * 300}})]
    whole = b"".join(sent)
    wanted = list(frames_of.frames([whole]))
    assert [one["type"] for one in wanted] == ["messageStart", "contentBlockDelta"]
    for size in (1, 3, 11, 12, 13, 64):
        assert list(frames_of.frames(whole[at : at + size] for at in range(0, len(whole), size))) == wanted
    assert list(frames_of.frames([whole[:-1]])) == wanted[:1]
    for at_byte in range(len(sent[0])):
        bent = bytearray(whole)
        bent[at_byte] ^= 0x10
        with pytest.raises((events.NotAnEvent, events.TooLong)):
            list(frames_of.frames([bytes(bent)]))


def test_its_wire_is_its_own() -> None:
    assert BEDROCK.wire is Wire.CONVERSE
    assert BEDROCK.is_at("bedrock-runtime.eu-west-1.amazonaws.com")
    assert not BEDROCK.is_at("my-vllm.elb.amazonaws.com")

"""The faults of the conformance suite: what a server sends, in each wire, streamed and whole, and what comes of it.

A fault's outcome is the kind that the table of failures gives it, or `reply` with what was mended. Where a wire or a
form differs, that stands beside the fault and nowhere else.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.providers.raw_server import Act, raw
from tests.providers.speaking import SO_FAR, Said, Speech, Tool, data, frame, framed

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n"
FRAMED = EVENTS.replace(b"text/event-stream; charset=utf-8", b"application/vnd.amazon.eventstream")
Made = Callable[[Speech, bool], Act]
SSE = ("anthropic", "chat_completions", "responses")
BEDROCK = ("bedrock_converse",)


@dataclass(frozen=True, slots=True)
class Fault:
    """`comes`: the outcome; `but`: another one where the key is the wire, the form, or `wire form`."""

    name: str
    made: Made
    comes: str
    but: Mapping[str, str] = field(default_factory=dict[str, str])
    wires: tuple[str, ...] = (*SSE, *BEDROCK)
    forms: tuple[str, ...] = ("streamed", "whole")

    def outcome(self, wire: str, form: str) -> str:
        return self.but.get(f"{wire} {form}", self.but.get(wire, self.but.get(form, self.comes)))


# --- how bytes go out -------------------------------------------------------------------------------------------------


def answer(status: int, body: bytes, *headers: str, kind: str = "application/json", length: int | None = None) -> Act:
    size = len(body) if length is None else length
    lines = [
        f"HTTP/1.1 {status} Said",
        f"content-type: {kind}",
        f"content-length: {size}",
        "connection: close",
        *headers,
    ]
    return raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def events(parts: Sequence[bytes], *, ends: bool = True) -> Act:
    """A stream of events, chunked, with its last chunk or without."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part)
    head = FRAMED if b"".join(parts)[:1] == b"\0" else EVENTS  # the length of a frame begins so
    return raw(head + b"transfer-encoding: chunked\r\n\r\n" + body + (b"0\r\n\r\n" if ends else b""))


def says(said: Said) -> Made:
    def made(speech: Speech, streamed: bool) -> Act:
        return events(speech.stream(said)) if streamed else answer(200, json.dumps(speech.whole(said)).encode())

    return made


def told(status: int, kind: str, message: str, *headers: str, code: str | None = None) -> Made:
    def made(speech: Speech, _: bool) -> Act:
        said = json.dumps(speech.error(kind, message, code)).encode()
        return answer(status, said, *headers, *speech.error_headers(kind, code))

    return made


def same(act: Act) -> Made:
    return lambda _speech, _streamed: act


def broken(streamed: Callable[[Speech], Act], whole: Callable[[Speech], Act]) -> Made:
    return lambda speech, form: streamed(speech) if form else whole(speech)


def parts(speech: Speech, said: Said | None = None) -> list[bytes]:
    return speech.stream(said or Said())


def body(speech: Speech, said: Said | None = None) -> bytes:
    return json.dumps(speech.whole(said or Said())).encode()


def _till(speech: Speech, word: str, said: Said | None = None) -> list[bytes]:
    """The events up to the one that says `word`, with it."""
    all_of = parts(speech, said)
    last = max(at for at, one in enumerate(all_of[:-2]) if word.encode() in one)
    return all_of[: last + 1]


def _halfway(speech: Speech) -> list[bytes]:
    """As far as the first words."""
    all_of = parts(speech)
    first = next(at for at, one in enumerate(all_of) if SO_FAR.encode() in one)
    return all_of[: first + 1]


def within(kind: str, message: str, *, after: bool) -> Made:
    """An error inside a 200: as an event, after words or before; in a whole answer in the answer's place."""

    def streamed(speech: Speech) -> Act:
        return events([*(_halfway(speech) if after else []), speech.error_event(kind, message)])

    return broken(streamed, lambda speech: answer(200, json.dumps(speech.error(kind, message, None)).encode()))


HTML = b"<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>"
DEEP = '{"a":' * 1_000 + "1" + "}" * 1_000
CALL = Said(tools=(Tool(),))


def calling(*tools: Tool) -> Made:
    return says(Said(text="", tools=tools))


HTTP: tuple[Fault, ...] = (
    Fault("400", told(400, "invalid_request_error", "messages.0: what is this?"), "format_error"),
    Fault(
        "400, the prompt is too long",
        told(400, "invalid_request_error", "prompt is too long: 9 > 8"),
        "context_overflow",
    ),
    Fault(
        "400, OpenAI's code of that",
        told(400, "invalid_request_error", "too many", code="context_length_exceeded"),
        "context_overflow",
    ),
    Fault(
        "400, llama.cpp's words of that",
        told(400, "exceed_context_size_error", "the request exceeds the available context size"),
        "context_overflow",
    ),
    Fault(
        "400, a parameter nobody knows",
        told(400, "invalid_request_error", "temperature: Extra inputs are not permitted"),
        "unsupported_parameter",
    ),
    Fault(
        "400, a result without its call",
        told(
            400,
            "invalid_request_error",
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a",
        ),
        "transcript_refused",
    ),
    Fault(
        "400, its signed reasoning",
        told(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block."),
        "thinking_signature",
    ),
    Fault(
        "400, its sealed reasoning",
        told(400, "invalid_request_error", "no", code="invalid_encrypted_content"),
        "invalid_encrypted_content",
    ),
    Fault(
        "400, against its policy",
        told(400, "invalid_request_error", "content_policy_violation: no"),
        "content_policy_blocked",
    ),
    Fault(
        "400, the key (Gemini)",
        told(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        "auth",
    ),
    Fault(
        "400, the model (OpenRouter)",
        told(400, "invalid_request_error", "m-1 is not a valid model ID"),
        "model_not_found",
    ),
    Fault("400, money", told(400, "invalid_request_error", "Your credit balance is too low"), "billing"),
    Fault("400, a picture", told(400, "invalid_request_error", "image exceeds 5 MB maximum"), "image_too_large"),
    Fault("400 in plain text", same(answer(400, b"no", kind="text/plain")), "format_error"),
    Fault("400, its error a text (Ollama)", same(answer(400, b'{"error":"model is required"}')), "format_error"),
    Fault("400 as a list", same(answer(400, b'[{"error":{"code":400,"message":"no"}}]')), "format_error"),
    Fault(
        "400 with an envelope of nulls",
        same(answer(400, b'{"error":{"message":null,"type":null,"code":null}}')),
        "format_error",
    ),
    Fault("401", told(401, "authentication_error", "invalid x-api-key"), "auth"),
    Fault(
        "401, the account is closed",
        told(401, "invalid_request_error", "gone", code="account_deactivated"),
        "auth_permanent",
    ),
    Fault("402", told(402, "billing_error", "no credits"), "billing"),
    Fault("403", told(403, "permission_error", "not yours"), "permission"),
    Fault(
        "403, the country",
        told(403, "request_forbidden", "no", code="unsupported_country_region_territory"),
        "provider_policy_blocked",
    ),
    Fault("404", told(404, "not_found_error", "model: m-1"), "model_not_found"),
    Fault("404 as a page", same(answer(404, HTML, kind="text/html")), "model_not_found"),
    Fault("408", told(408, "timeout", "slow"), "timeout"),
    Fault("409", told(409, "conflict_error", "again"), "conflict"),
    Fault("413", told(413, "request_too_large", "Request exceeds the maximum size"), "payload_too_large"),
    Fault("418", told(418, "teapot", "short and stout"), "unknown"),
    Fault("422", told(422, "invalid_request_error", "no"), "format_error"),
    Fault("429", told(429, "rate_limit_error", "slow down"), "rate_limit"),
    Fault("429 that says when", told(429, "rate_limit_error", "slow down", "retry-after: 7"), "rate_limit in 7 s"),
    Fault(
        "429 that says when, in ms", told(429, "requests", "slow down", "retry-after-ms: 1500"), "rate_limit in 1.5 s"
    ),
    Fault(
        "429 that was over long ago",
        told(429, "requests", "slow down", "retry-after: Wed, 21 Oct 2015 07:28:00 GMT"),
        "rate_limit in 0 s",
    ),
    Fault(
        "429 that says when in no words of this world",
        told(429, "requests", "slow down", "retry-after: soon"),
        "rate_limit",
    ),
    Fault("429 that says in minus one second", told(429, "requests", "slow down", "retry-after: -1"), "rate_limit"),
    Fault(
        "429 that says in a year", told(429, "requests", "slow down", "retry-after: 31536000"), "rate_limit in 3600 s"
    ),
    Fault(
        "429, money",
        told(429, "insufficient_quota", "You exceeded your current quota", code="insufficient_quota"),
        "billing",
    ),
    Fault("429, of a day", told(429, "rate_limit_error", "limit of 50 requests per day reached"), "daily_limit"),
    Fault("429, overloaded", told(429, "rate_limit_error", "The engine is currently overloaded"), "overloaded"),
    Fault("500", told(500, "api_error", "Internal server error"), "server_error"),
    Fault("500 with nothing", same(answer(500, b"")), "server_error"),
    Fault("500, no user query (Ollama)", told(500, "api_error", "no user query found in messages"), "format_error"),
    Fault("502 as a page", same(answer(502, HTML, kind="text/html")), "server_error"),
    Fault("503", told(503, "server_error", "busy"), "overloaded"),
    Fault("503, the model is loading", told(503, "unavailable_error", "Loading model"), "loading"),
    Fault("503 whose body breaks off", same(answer(503, b'{"error":', length=500)), "overloaded"),
    Fault("504", told(504, "timeout_error", "slow"), "timeout"),
    Fault("524 of a proxy", same(answer(524, b"error code: 524", kind="text/plain")), "timeout"),
    Fault("529", told(529, "overloaded_error", "Overloaded"), "overloaded"),
    Fault("a redirect", same(answer(307, b"", "location: https://elsewhere.test/")), "redirected"),
    Fault("a redirect to nowhere", same(answer(301, b"")), "redirected"),
    Fault("an error of 2 MB", same(answer(400, b'{"error":{"message":"' + b"x" * 2_000_000 + b'"}}')), "format_error"),
)

CUT = "stream_cut"
UPSTREAM = {
    "id": "gen-1", "provider": "Somebody",
    "error": {"code": 429, "message": "it returned an error", "metadata": {"provider_name": "Somebody", "raw": "slow"}},
}  # fmt: skip
BODIES: tuple[Fault, ...] = (
    Fault("a page as a 200", same(answer(200, HTML, kind="text/html")), "not_an_api"),
    Fault("nothing as a 200", same(answer(200, b"")), "empty"),
    Fault("a stream without an event", same(events([])), "empty"),
    Fault("an empty object", same(answer(200, b"{}")), "not_an_api"),
    Fault("a hang-up before the answer", same(raw()), "connection_lost"),
    Fault("a hang-up in the head", same(raw(b"HTTP/1.1 200 OK\r\ncontent-ty")), "connection_lost"),
    Fault("no HTTP at all", same(raw(b"SSH-2.0-OpenSSH_9.2p1\r\n")), "connection_lost"),
    Fault(
        "compressed, unasked",
        broken(
            lambda s: raw(EVENTS + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"".join(parts(s)))),
            lambda s: answer(200, gzip.compress(body(s)), "content-encoding: gzip"),
        ),
        "encoded",
    ),
    Fault(
        "cut off after some words",
        broken(
            lambda s: events(_halfway(s), ends=False),
            lambda s: answer(200, body(s)[:60], length=len(body(s))),
        ),
        CUT,
        {"whole": "connection_lost"},
    ),
    Fault(
        "a clean end after some words",
        broken(lambda s: events(_halfway(s)), lambda s: answer(200, body(s)[:60])),
        CUT,
        {"whole": "not_an_api"},
    ),
    Fault(
        "a clean end within a call",
        broken(
            lambda s: events(_till(s, "call_1", CALL)),
            lambda s: answer(200, body(s, CALL)[:-40]),
        ),
        CUT,
        {"whole": "not_an_api"},
    ),
    Fault(
        "a chunk of no length",
        broken(
            lambda s: raw(EVENTS + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + _halfway(s)[0]),
            lambda _: raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}"),
        ),
        "connection_lost",
    ),
    Fault(
        "no JSON in an event",
        broken(lambda s: events([*_halfway(s), s.event(b"{no json")]), lambda _: answer(200, b"{no json")),
        "stream_garbled",
        {"whole": "not_an_api"},
    ),
    Fault(
        "a list for an event",
        broken(lambda s: events([*_halfway(s), s.event(b"[1]")]), lambda _: answer(200, b"[1]")),
        "stream_garbled",
        {"whole": "not_an_api"},
    ),
    Fault(
        "words that are a number",
        says(Said(text=17)),
        "stream_garbled",
    ),
    Fault("an error within, first", within("overloaded_error", "Overloaded", after=False), "overloaded"),
    Fault("an error within, after words", within("overloaded_error", "Overloaded", after=True), "overloaded"),
    Fault("a rate limit within", within("rate_limit_error", "slow down", after=False), "rate_limit"),
    Fault("a failure within", within("server_error", "it broke", after=True), "server_error"),
    Fault(
        "an overflow within",
        within("invalid_request_error", "prompt is too long: 9 > 8", after=False),
        "context_overflow",
    ),
    Fault(
        "an aggregator's error within",
        broken(
            lambda s: events([*_halfway(s), data({"id": "1", "error": {"code": 502, "message": "upstream broke"}})]),
            lambda _: answer(200, b'{"id":"1","error":{"code":502,"message":"upstream broke"}}'),
        ),
        "server_error",
        wires=("chat_completions",),
    ),
    Fault(
        "an aggregator's upstream at its limit (OpenRouter)",
        broken(lambda _: events([data(UPSTREAM)]), lambda _: answer(200, json.dumps(UPSTREAM).encode())),
        "upstream_rate_limit",
        wires=("chat_completions",),
    ),
    Fault(
        "an aggregator's upstream at its limit, after words (OpenRouter)",
        lambda s, _: events([*_halfway(s), data(UPSTREAM)]),
        "upstream_rate_limit",
        wires=("chat_completions",),
        forms=("streamed",),
    ),
    Fault("more words than were asked for", says(Said(text="x" * 200_000)), "reply_too_large"),
    Fault(
        "a block that was not asked for",
        broken(
            lambda s: (
                events(
                    [
                        data({"type": "message_start", "message": {"id": "m", "content": []}}),
                        data(
                            {
                                "type": "content_block_start",
                                "index": 0,
                                "content_block": {"type": "server_tool_use", "id": "a"},
                            }
                        ),
                    ]
                )
                if s.wire == "anthropic"
                else events(
                    [
                        parts(s)[0],
                        data(
                            {
                                "type": "response.output_item.added",
                                "output_index": 0,
                                "item": {"type": "web_search_call", "id": "a"},
                            }
                        ),
                    ]
                )
            ),
            lambda s: answer(
                200,
                json.dumps(
                    {
                        **s.whole(Said()),
                        "content" if s.wire == "anthropic" else "output": [{"type": "server_tool_use", "id": "a"}],
                    }
                ).encode(),
            ),
        ),
        "unexpected_block",
        wires=("anthropic", "responses"),
    ),
)

REPLIES: tuple[Fault, ...] = (
    Fault("an answer", says(Said()), "reply"),
    Fault("members that nobody knows", says(Said(more=True)), "reply"),
    Fault(
        "pings and comments between",
        broken(
            lambda s: events([s.ping, *(s.ping + one for one in parts(s))]),
            lambda s: answer(200, body(s)),
        ),
        "reply",
    ),
    Fault(
        "lines that end as on Windows",
        broken(
            lambda s: events([one.replace(b"\n", b"\r\n") for one in parts(s)]),
            lambda s: answer(200, body(s)),
        ),
        "reply",
        wires=SSE,
    ),
    Fault(
        "a byte at a time",
        broken(
            lambda s: events([bytes([one]) for one in b"".join(parts(s, Said(text="ü")))]),
            lambda s: answer(200, body(s, Said(text="ü"))),
        ),
        "reply",
    ),
    Fault(
        "a whole answer to who asked for a stream",
        broken(lambda s: answer(200, body(s)), lambda s: events(parts(s))),
        "reply",
        wires=SSE,  # on Bedrock's the address says which is wanted, and its SDK reads no other
    ),
    Fault("an answer of another model", says(Said(model="another-model")), "reply of another-model", wires=SSE),
    Fault("a model that is no text", says(Said(model=7)), "reply of nobody", wires=SSE),
    Fault("usage that is missing", says(Said(usage=None)), "reply usage_missing"),
    Fault("usage that is negative", lambda s, form: says(Said(usage=s.usage(-5, 7)))(s, form), "reply usage_absurd"),
    Fault("usage that is a text", lambda s, form: says(Said(usage=s.usage("20", 7)))(s, form), "reply usage_absurd"),
    Fault(
        "usage that is half a token", lambda s, form: says(Said(usage=s.usage(20.5, 7)))(s, form), "reply usage_absurd"
    ),
    Fault("usage of nothing", lambda s, form: says(Said(usage=s.usage(0, 7)))(s, form), "reply usage_zero"),
    Fault("usage of words for nothing", lambda s, form: says(Said(usage=s.usage(20, 0)))(s, form), "reply usage_zero"),
    Fault(
        "usage of more than there is",
        lambda s, form: says(Said(usage=s.usage(10**12, 7)))(s, form),
        "reply usage_absurd",
    ),
    Fault(
        "too many words for what is billed",
        lambda s, form: says(Said(text="x" * 70_000, usage=s.usage(20, 1)))(s, form),
        "reply usage_too_small",
    ),
    Fault("cut at its length", says(Said(reason="max_tokens")), "reply max_tokens"),
    Fault("an end of no known kind", says(Said(reason="tired")), "reply tired"),
    Fault(
        "a refusal",
        says(Said(text="", refusal="I will not")),
        "reply refusal",
        {"anthropic": "reply refusal empty"},
    ),
    Fault("blank words", says(Said(text=" \n")), "reply empty"),
    Fault("nothing said", says(Said(text="")), "reply empty"),
    Fault("a call", calling(Tool()), "reply look"),
    Fault("two calls", calling(Tool(), Tool("call_2", "see", ("{}",))), "reply look see"),
    Fault("a call without a name", calling(Tool(name="")), "reply unfit:unnamed_tool"),
    Fault("a call whose name is null", calling(Tool(name=None)), "reply unfit:unnamed_tool"),
    Fault("a call to what cannot be a tool", calling(Tool(name="rm -rf /")), "reply unfit:unfit_rm_-rf__"),
    Fault("a call to no tool of ours", calling(Tool(name="open_door")), "reply open_door"),
    Fault("a call without an id", calling(Tool(id="")), "reply look"),
    Fault("a call whose id is null", calling(Tool(id=None)), "reply look"),
    Fault("a call whose id is a novel", calling(Tool(id="x" * 9_000)), "reply look"),
    Fault("two calls with one id", calling(Tool(), Tool(pieces=('{"x":2}',))), "reply look look"),
    Fault("bad JSON in a call", calling(Tool(pieces=('{"x": tru',))), "reply unfit:look"),
    Fault("a call cut in its JSON", calling(Tool(pieces=('{"x":"abc',))), "reply unfit:look"),
    Fault("a call with a list", calling(Tool(pieces=("[1]",))), "reply unfit:look"),
    Fault("a call with half a pair of surrogates", calling(Tool(pieces=('{"x":"\\ud83d"}',))), "reply unfit:look"),
    Fault("a call nested a thousand deep", calling(Tool(pieces=(DEEP,))), "reply unfit:look"),
    Fault("a call with nothing", calling(Tool(pieces=("",))), "reply look"),
    Fault(
        "two calls whose pieces are interleaved",
        broken(
            lambda s: events(_interleaved(s)),
            lambda s: answer(200, body(s, Said(text="", tools=(Tool(), Tool("call_2", "see"))))),
        ),
        "reply look see",
        {"anthropic streamed": "stream_garbled", "bedrock_converse streamed": "stream_garbled"},
    ),
    Fault(
        "an index that comes again",
        broken(lambda s: events(_again(s)), lambda s: answer(200, body(s, CALL))),
        "reply look",
        {
            "anthropic streamed": "stream_garbled",
            "responses streamed": "stream_garbled",
            "bedrock_converse streamed": "stream_garbled",
        },
    ),
    Fault(
        "an end before a beginning",
        broken(lambda s: events(parts(s)[-1:]), lambda s: answer(200, body(s))),
        "reply",
        {
            "anthropic streamed": "stream_garbled",
            "chat_completions streamed": "stream_garbled",
            "bedrock_converse streamed": CUT,
        },
    ),
    Fault(
        "no last word",
        broken(lambda s: events(parts(s)[:-1]), lambda s: answer(200, body(s))),
        "reply",
        {
            "anthropic streamed": CUT,
            "responses streamed": CUT,
            "bedrock_converse streamed": "reply usage_missing",
        },
    ),
)


def _interleaved(speech: Speech) -> list[bytes]:
    """Two calls, the pieces of one between those of the other."""
    all_of = parts(speech, Said(text="", tools=(Tool(), Tool("call_2", "see"))))
    match speech.wire:
        case "anthropic" | "bedrock_converse":  # start 0, delta, delta, stop 0, start 1, …
            return [
                all_of[0],
                all_of[1],
                all_of[5],
                all_of[2],
                all_of[6],
                all_of[3],
                all_of[7],
                *all_of[4:5],
                *all_of[8:],
            ]
        case "chat_completions":  # head, call 0, two pieces, call 1, two pieces
            return [all_of[0], all_of[1], all_of[4], all_of[2], all_of[5], all_of[3], all_of[6], *all_of[7:]]
        case _:  # created, added 0, delta 0, done 0, added 1, delta 1, done 1, completed
            return [all_of[0], all_of[1], all_of[4], all_of[2], all_of[5], all_of[3], all_of[6], *all_of[7:]]


def _again(speech: Speech) -> list[bytes]:
    """What ended, or what began a call, comes a second time."""
    all_of = parts(speech, CALL)
    word = {
        "anthropic": b"content_block_stop",
        "responses": b"output_item.done",
        "bedrock_converse": b"contentBlockStop",
    }.get(speech.wire, b'"name":"look"')
    at = next(nth for nth, one in enumerate(all_of) if word in one)
    return [*all_of[: at + 1], all_of[at], *all_of[at + 1 :]]


def _frames(*made: Callable[[Speech], bytes]) -> Made:
    """The first words, then these frames."""
    return lambda speech, _: events([*_halfway(speech), *(one(speech) for one in made)])


def _thrown(kind: str, *, after: bool = True) -> Made:
    told = {"message": "as it is said", "originalStatusCode": 500}
    return lambda speech, _: events([*(_halfway(speech) if after else []), frame(kind, told, "exception")])


def _refused(status: int, kind: str, message: str) -> Made:
    """As AWS does: the kind in a header, the sentence in the body, once with a capital letter."""
    header = f"x-amzn-errortype: {kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return same(answer(status, json.dumps({"Message": message}).encode(), header))


def _bent(one: bytes, at: int) -> bytes:
    """A frame in which one byte is another."""
    return one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :]


_FRAME = frame("contentBlockStop", {"contentBlockIndex": 0})
_LONG = frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x" * 9_000_000}})
ON_DEMAND = "Invocation of model ID m-1 with on-demand throughput isn\u2019t supported."
STREAMED = ("streamed",)
OF_BEDROCK: tuple[Fault, ...] = (
    *(
        Fault(f"{kind} after words", _thrown(kind), comes, wires=BEDROCK, forms=STREAMED)
        for kind, comes in (
            ("modelStreamErrorException", "server_error"), ("throttlingException", "rate_limit"),
            ("internalServerException", "server_error"), ("validationException", "format_error"),
            ("serviceUnavailableException", "overloaded"), ("modelTimeoutException", "timeout"),
        )
    ),
    Fault("throttlingException first", _thrown("throttlingException", after=False), "rate_limit", wires=BEDROCK,
          forms=STREAMED),
    Fault("an exception that nobody knows", _thrown("somethingException"), "server_error", wires=BEDROCK,
          forms=STREAMED),
    Fault("an error that is no exception", _frames(lambda _: framed(
        {":message-type": "error", ":error-code": "throttlingException", ":error-message": "slow"}, b"")),
        "rate_limit", wires=BEDROCK, forms=STREAMED),
    Fault("a frame whose sum is wrong", _frames(lambda _: _bent(_FRAME, len(_FRAME) - 1)), "stream_garbled",
          wires=BEDROCK, forms=STREAMED),
    Fault("a frame whose length is wrong", _frames(lambda _: _bent(_FRAME, 2)), "stream_garbled", wires=BEDROCK,
          forms=STREAMED),
    Fault("a frame without its type", _frames(lambda _: framed({":message-type": "event"}, b"{}")), "stream_garbled",
          wires=BEDROCK, forms=STREAMED),
    Fault("a frame that is cut off", _frames(lambda _: _FRAME[:-5]), CUT, wires=BEDROCK, forms=STREAMED),
    Fault("a frame longer than any", _frames(lambda _: _LONG), "reply_too_large", wires=BEDROCK, forms=STREAMED),
    Fault("lines where frames were told", same(raw(FRAMED + b'\r\ndata: {"a":1}\n\n')), "stream_garbled",
          wires=BEDROCK, forms=STREAMED),
    Fault("a call that the service calls malformed", says(Said(reason="malformed_tool_use")), "stream_garbled",
          wires=BEDROCK),
    Fault("filtered", says(Said(reason="content_filtered")), "reply refusal", wires=BEDROCK),
    Fault("the window is full", says(Said(reason="model_context_window_exceeded")),
          "reply model_context_window_exceeded", wires=BEDROCK),
    Fault("a picture in the answer", broken(
        lambda s: events([parts(s)[0], frame("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {}}})]),
        lambda s: answer(200, json.dumps({**s.whole(Said()), "output": {"message": {"content": [{"image": {}}]}}})
                         .encode())),
        "unexpected_block", wires=BEDROCK),
    Fault("429, tokens", _refused(429, "ThrottlingException", "Too many tokens, please wait"), "rate_limit",
          wires=BEDROCK),
    Fault("429, not ready", _refused(429, "ModelNotReadyException", "wait"), "loading", wires=BEDROCK),
    Fault("424", _refused(424, "ModelErrorException", "it failed"), "server_error", wires=BEDROCK),
    Fault("408, the model", _refused(408, "ModelTimeoutException", "slow"), "timeout", wires=BEDROCK),
    Fault("403, the token is over", _refused(403, "ExpiredTokenException", "it is expired"), "auth", wires=BEDROCK),
    Fault("403, the signature", _refused(403, "InvalidSignatureException", "Signature expired"), "auth",
          wires=BEDROCK),
    Fault("403, the bearer token", _refused(403, "AccessDeniedException", "Bearer Token has expired"), "auth",
          wires=BEDROCK),
    Fault("403, the model", _refused(403, "AccessDeniedException", "You don't have access to the model with the "
          "specified model ID."), "model_not_enabled", wires=BEDROCK),
    Fault("400, a quota", _refused(400, "ServiceQuotaExceededException", "too much"), "quota", wires=BEDROCK),
    Fault("400, the name", _refused(400, "ValidationException", "The provided model identifier is invalid."),
          "model_not_found", wires=BEDROCK),
    Fault("400, on demand", _refused(400, "ValidationException", ON_DEMAND), "model_not_found", wires=BEDROCK),
    Fault("400, Bedrock's words of an overflow", _refused(400, "ValidationException", "Input is too long for "
          "requested model."), "context_overflow", wires=BEDROCK),
    Fault("400, its tools are missing", _refused(400, "ValidationException", "The toolConfig field must be defined "
          "when using toolUse and toolResult content blocks."), "transcript_refused", wires=BEDROCK),
)  # fmt: skip
FAULTS: tuple[Fault, ...] = (*HTTP, *BODIES, *REPLIES, *OF_BEDROCK)


def table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """One line a fault: what comes of it, once where all agree."""
    lines: list[str] = []
    for name, cells in rows.items():
        different = set(cells.values())
        told = (
            different.pop() if len(different) == 1 else "; ".join(f"{where}: {what}" for where, what in cells.items())
        )
        lines.append(f"{name:<48}{told}")
    return "\n".join(lines)

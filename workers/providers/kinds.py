"""Owns the table of failures: how each kind is known, what is done about it, and where that is written.

Invariant: the first row that fits counts, so what is narrow stands before what is wide, and a wait that a provider asks
for stands above words that only look like money. Nothing else in the house looks at a status or at a provider's words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

KEY = "set NIGHTSHIFT_PROVIDER_KEY, or mend the key's file in the folder of keys"
ADDRESS = "check NIGHTSHIFT_PROVIDER_BASE_URL"


@dataclass(frozen=True, slots=True)
class Do:
    """What is done. `retry`: the same call may succeed here later. `park`: a wait for it need not hold a slot.
    `compress`: the prompt is reduced; `spill`: its largest blocks are left out, and nothing is summarised.
    `refresh`: the key is read again first; `rotate_credential`: another key of the same provider may do.
    `fall_back`: another model may do. `cools` the key for every worker; `rests` the whole provider, whatever the key.
    `drop_reasoning`: sent without signed reasoning, it goes through."""

    retry: bool = False
    park: bool = False
    compress: bool = False
    spill: bool = False
    refresh: bool = False
    rotate_credential: bool = False
    fall_back: bool = False
    cools: bool = False
    rests: bool = False
    drop_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """`statuses`: of HTTP, or the one that an error inside a 200 stands for; empty for any. `words`: one of them is in
    what the provider said, or is its type or code; empty for any. `own`: codes of our own wire, where there was no
    answer. `asked`: whether it told when to come back, None for either; `within`: whether the answer had begun. `code`
    replaces the provider's own where a person is told one name for all of them; so does `says` its sentence."""

    kind: str
    do: Do
    advice: str
    source: str
    statuses: frozenset[int] = frozenset()
    words: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    asked: bool | None = None
    within: bool | None = None
    upstream: bool | None = None
    code: str | None = None
    says: str | None = None
    pattern: re.Pattern[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.words:
            object.__setattr__(self, "pattern", re.compile("|".join(map(re.escape, self.words))))


RETRY = Do(retry=True, park=True, fall_back=True, rests=True)
"""The provider failed as a whole, whoever asked with whichever key."""
BUSY = Do(retry=True, park=True, fall_back=True, rotate_credential=True, cools=True)
HERE = Do(retry=True)
"""Tried again in place a few times, and given up: no outage, so nothing to wait for without a slot."""
ELSEWHERE = Do(fall_back=True)
ANOTHER_KEY = Do(rotate_credential=True, fall_back=True, cools=True)
NOTHING = Do()


def _of(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


def _own(*codes: str) -> frozenset[str]:
    return frozenset(codes)


REDUCE = Do(compress=True)
UNSIGNED = Do(drop_reasoning=True, fall_back=True)
FITS_NOT = "the conversation no longer fits the model's window"
OVERFLOW_SAID = (
    "prompt is too long", "exceed context limit", "model_context_window_exceeded", "context_length_exceeded",
    "maximum context length", "context window", "exceeds the available context size", "input token count",
    "exceed_context_size_error", "range of input length", "input is too long for requested model",
    "too many input tokens",
)  # fmt: skip
MONEY_SAID = (
    "spend limit", "spending limit", "spend cap", "usage limit", "credit balance", "insufficient_quota", "billing",
    "insufficient credits", "insufficient balance", "arrearage",
)  # fmt: skip

ANSWERED: tuple[Row, ...] = (
    Row("context_overflow", REDUCE, "",
        "Anthropic's and OpenAI's errors; vLLM, llama.cpp, Gemini, Qwen, Bedrock: public issues",
        _of(400, 422), OVERFLOW_SAID, code="context_overflow", says=FITS_NOT),
    Row("long_context_tier", REDUCE, "", "peer's row; Anthropic: a 429 on prompts above the tier of the account",
        _of(429), ("extra usage is required for long context", "long context requests"), code="context_overflow",
        says="the account may not send a prompt of that length"),
    Row("oauth_long_context_beta_forbidden", ELSEWHERE, "the account has no long context: use an API key", "peer's row",
        _of(400, 403), ("long context beta is not",)),
    Row("payload_too_large", Do(spill=True), "the request is larger than the provider takes",
        "Anthropic: 413 request_too_large above 32 MB", _of(413)),
    Row("image_too_large", NOTHING, "send a smaller picture",
        "Anthropic: 5 MB, 8000 px", _of(400), ("image exceeds", "image dimensions exceed", "image_too_large")),
    Row("billing", Do(rotate_credential=True, fall_back=True, cools=True),
        "the account has no money left: add credit at the provider",
        "Anthropic: a spend-cap 429 has no retry-after and never succeeds; OpenAI: insufficient_quota",
        _of(400, 402, 403, 429), MONEY_SAID, asked=False, code="provider_money"),
    Row("billing", Do(rotate_credential=True, fall_back=True, cools=True),
        "the account has no money left: add credit at the provider",
        "Anthropic: 402 billing_error; OpenRouter: 402 credits", _of(402), code="provider_money"),
    Row("thinking_signature", UNSIGNED, "", "Anthropic, preserved thinking: the text of the error",
        _of(400), ("invalid `signature` in `thinking`", "blocks in the latest assistant message cannot be modified",
                   "invalid signature in thinking"),
        code="reasoning_refused", says="the provider no longer accepts its own signed reasoning"),
    Row("invalid_encrypted_content", UNSIGNED, "", "OpenAI Responses: invalid_encrypted_content; peer's row",
        _of(400), ("invalid_encrypted_content", "encrypted content could not be"),
        code="reasoning_refused", says="the provider no longer accepts its own sealed reasoning"),
    Row("auth_permanent", ANOTHER_KEY, f"the account behind this key is closed: {KEY}", "OpenAI: 401; Anthropic: 403",
        _of(401, 403), ("account_deactivated", "has been deactivated", "has been disabled", "key_revoked")),
    Row("provider_policy_blocked", ELSEWHERE, "the provider's policies leave no endpoint: change them there",
        "OpenRouter: 404 of data policy; OpenAI: unsupported_country_region_territory", _of(403, 404, 451),
        ("data policy", "guardrail restrictions", "unsupported_country", "unavailable for legal reasons")),
    Row("content_policy_blocked", ELSEWHERE, "the provider will not answer this: put it another way",
        "OpenAI: content_policy_violation; Azure: content_filter; OpenRouter: 403 moderation", _of(400, 403, 451),
        ("content_policy", "content_filter", "content management policy", "responsibleaipolicy", "requires moderation",
         "violating our usage policy", "data_inspection_failed", "content filtering policy")),
    Row("auth", Do(refresh=True, rotate_credential=True, fall_back=True, cools=True),
        f"the key is wrong or was withdrawn: {KEY}", "Anthropic, OpenAI: 401", _of(401)),
    Row("auth", Do(refresh=True, rotate_credential=True, fall_back=True, cools=True),
        f"the key is wrong or was withdrawn: {KEY}", "Gemini: 400 API_KEY_INVALID", _of(400),
        ("api key not valid", "api_key_invalid", "incorrect api key")),
    Row("auth", Do(refresh=True, rotate_credential=True, fall_back=True, cools=True),
        f"the key is wrong, expired, or this machine's clock is: {KEY}",
        "AWS: UnrecognizedClient-, InvalidSignature-, ExpiredTokenException; bearer tokens of Bedrock", _of(403),
        ("unrecognizedclient", "invalidsignature", "expiredtoken", "security token included", "signature expired",
         "request signature we calculated", "bearer token has expired", "make sure your api key is valid")),
    Row("model_not_enabled", ELSEWHERE, "the account has not been given this model: ask for it in Bedrock's console",
        "Bedrock: AccessDeniedException", _of(403), ("access to the model", "model access is denied")),
    Row("permission", Do(refresh=True, rotate_credential=True, fall_back=True, cools=True),
        "the key may not do this: check its rights and its workspace at the provider", "Anthropic: 403", _of(403)),
    Row("model_not_found", ELSEWHERE, f"no such model or address: check NIGHTSHIFT_MODEL and {ADDRESS[6:]}",
        "Anthropic: 404 `model: name`; OpenAI: model_not_found; Ollama: try pulling it", _of(404)),
    Row("model_not_found", ELSEWHERE, "no such model: check NIGHTSHIFT_MODEL", "OpenRouter, vLLM, Bedrock: 400",
        _of(400), ("not a valid model", "model_not_found", "invalid model", "unknown model",
                   "model identifier is invalid")),
    Row("model_not_found", ELSEWHERE,
        "this model is reached by an inference profile alone: set NIGHTSHIFT_MODEL to its id (`us.…`, `global.…`)",
        "Bedrock: 400 on models without on-demand throughput", _of(400), ("on-demand throughput isn",)),
    Row("upstream_rate_limit", RETRY, "the server behind the aggregator is at its limit", "OpenRouter: metadata",
        _of(429), upstream=True),
    Row("upstream_rate_limit", RETRY, "the server behind the aggregator is at its limit", "OpenRouter: its sentence",
        _of(429), ("rate-limited upstream",)),
    Row("rate_limit", BUSY, "the provider's rate limit is reached", "Bedrock: throttlingException in a stream",
        _of(429), ("throttlingexception",), within=True),
    Row("upstream_rate_limit", RETRY, "the server behind the aggregator is at its limit",
        "OpenRouter: an error while generating; a key at its limit is refused before", _of(429), within=True),
    Row("daily_limit", ANOTHER_KEY, "the provider's limit of a day is reached", "Gemini: ...PerDay; OpenRouter: free",
        _of(429), ("per day", "perday", "per-day", "daily limit"), asked=False),
    Row("quota", ANOTHER_KEY, "the account's quota at the provider is reached: ask there for more",
        "Bedrock: ServiceQuotaExceededException, a 400", _of(400), ("servicequotaexceeded",)),
    Row("loading", Do(retry=True, park=True, fall_back=True, rests=True), "the model is not ready yet",
        "Bedrock: ModelNotReadyException, a 429", _of(429), ("modelnotready", "not ready to serve")),
    Row("overloaded", BUSY, "the provider is overloaded", "peer's row: a 429 whose words say overload", _of(429),
        ("overloaded", "at capacity")),
    Row("rate_limit", BUSY, "the provider's rate limit is reached", "Anthropic, OpenAI: 429", _of(429)),
    Row("loading", Do(retry=True, park=True, fall_back=True, rests=True), "the server is loading its model",
        "llama.cpp server: 503 unavailable_error", _of(503), ("loading model",)),
    Row("overloaded", BUSY, "the provider is overloaded", "Anthropic: 529; 503 by RFC 9110", _of(503, 529)),
    Row("format_error", ELSEWHERE, "the server's chat template refuses this conversation", "Ollama #18107: a 500",
        _of(500), ("no user query found in messages",)),
    Row("llama_cpp_grammar", ELSEWHERE, "a tool's schema holds a pattern that this server cannot follow", "peer's row",
        _of(400, 500), ("failed to parse grammar", "error parsing grammar", "json schema conversion failed")),
    Row("multimodal_tool_content", ELSEWHERE, "this server takes no pictures in what tools say", "peer's row",
        _of(400, 422), ("tool message content must be a string", "multimodal tool", "image_url is only supported by")),
    Row("server_error", RETRY, "the model failed behind the provider's address",
        "Bedrock: ModelErrorException, modelStreamErrorException", _of(424)),
    Row("timeout", RETRY, "the provider timed out", "Anthropic: 504; RFC 9110: 408; Cloudflare: 522, 524",
        _of(408, 504, 522, 524)),
    Row("conflict", HERE, "the provider saw a conflict", "Anthropic: 409; the SDKs repeat it; RFC 8470: 425",
        _of(409, 425)),
    Row("redirected", ELSEWHERE, "it redirects: set NIGHTSHIFT_PROVIDER_BASE_URL to the address it names",
        "RFC 9110: a POST with a key follows nobody", _of(301, 302, 303, 307, 308)),
    Row("transcript_refused", ELSEWHERE, "the provider finds the order of calls and results wrong",
        "Anthropic's and OpenAI's texts (reference/providers.md 1.3, 2); Bedrock's: public issues", _of(400),
        ("toolresult blocks at messages", "tooluse blocks of previous turn", "toolconfig field must be defined",
         "`tool_use` ids", "unexpected `tool_use_id`", "must be followed by tool messages", "no tool output found",
         "a response to a preceeding message")),
    Row("unsupported_parameter", ELSEWHERE, "the provider does not know a parameter of the request",
        "Anthropic: Extra inputs; OpenAI: unsupported_parameter; Mistral: 422 extra_forbidden; Bedrock: texts",
        _of(400, 422),
        ("extraneous key", "did not allow prompt caching", "this model doesn't support",
         "extra inputs are not permitted", "unsupported_parameter", "unsupported parameter", "extra_forbidden")),
    Row("format_error", ELSEWHERE, "the request was refused; the sentence says why", "Anthropic: 400; Mistral: 422",
        _of(400, 422)),
)  # fmt: skip
SERVER = Row("server_error", RETRY, "the provider failed", "RFC 9110: 5xx; the SDKs repeat it")
UNKNOWN = Row("unknown", ELSEWHERE, "it was refused", "no row fits: a 4xx is the caller's fault")

OF_WIRE: tuple[Row, ...] = (
    Row("unreachable", RETRY, "", "refused, or no such name: transient more often than not",
        own=_own("provider_unreachable")),
    Row("connection_lost", RETRY, "", "also a pooled connection that the other side had just closed",
        own=_own("provider_connection_lost")),
    Row("timeout", RETRY, "", "the SDK's own policy repeats time-outs",
        own=_own("provider_connect_timeout", "provider_write_timeout", "provider_first_byte_timeout")),
    Row("stalled", RETRY, "", "a stream sends pings; silence means that it is gone", own=_own("provider_stalled")),
    Row("stream_cut", RETRY, "", "a clean end before the last event is no end, though the SDK reports none",
        own=_own("provider_cut")),
    Row("empty", RETRY, "", "a proxy that lost its other side", own=_own("provider_empty")),
    Row("stream_garbled", RETRY, "", "seen of proxies that drop bytes", own=_own("provider_bad_stream")),
    Row("tls", RETRY, "", "a handshake that broke off", own=_own("provider_tls")),
    Row("ssl_cert_verification", ELSEWHERE, f"{ADDRESS}, this machine's clock and its CA file", "peer's row",
        own=_own("provider_tls_certificate")),
    Row("not_an_api", ELSEWHERE, "check that NIGHTSHIFT_PROVIDER_BASE_URL is the address of the provider's API",
        "a page or a proxy's sign-in as a 200", own=_own("provider_not_a_stream")),
    Row("encoded", ELSEWHERE, "turn the compression of the proxy before the provider off", "not asked for",
        own=_own("provider_encoded")),
    Row("too_slow", ELSEWHERE, "ask for less output, or for the work in smaller parts", "our own bound of a call",
        own=_own("provider_total_timeout")),
    Row("reply_too_large", ELSEWHERE,
        "no model says that much; check what answers at NIGHTSHIFT_PROVIDER_BASE_URL", "our own bound of an answer",
        own=_own("reply_too_large")),
    Row("unexpected_block", ELSEWHERE, "the model used a feature that was not asked for; check the model's settings",
        "a block that cannot be sent back", own=_own("unexpected_block")),
    Row("body_too_large", Do(spill=True), "", "issue: a body above 30 MB is refused before it is sent",
        own=_own("body_too_large")),
    Row("not_configured", ELSEWHERE, "", "no key or address of that provider on this worker",
        own=_own("provider_not_configured", "bedrock_extra_missing")),
    Row("resting", Do(retry=True, park=True, fall_back=True), "", "the fleet knows that it takes no calls now",
        own=_own("provider_resting")),
)  # fmt: skip
WITHIN: dict[str, int] = {
    # `error.type` of an event inside a 200, which carries no status of its own
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "conflict_error": 409, "request_too_large": 413, "rate_limit_error": 429,
    "rate_limit_exceeded": 429, "insufficient_quota": 429, "tokens": 429, "requests": 429, "api_error": 500,
    "server_error": 500, "timeout_error": 504, "overloaded_error": 529, "context_length_exceeded": 400,
    "invalid_prompt": 400, "exceed_context_size_error": 400, "unavailable_error": 503,
    # Bedrock's exceptions in a stream, as their codes
    "validation_exception": 400, "service_quota_exceeded_exception": 400, "access_denied_exception": 403,
    "resource_not_found_exception": 404, "model_timeout_exception": 408, "model_stream_error_exception": 424,
    "model_error_exception": 424, "throttling_exception": 429, "model_not_ready_exception": 429,
    "internal_server_exception": 500, "service_unavailable_exception": 503,
}  # fmt: skip

"""What is done about each failure: a table, judged without any network."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from shared.errors import ProviderError
from workers.providers import kinds
from workers.providers.failures import (
    IN_PLACE_S,
    TRIES,
    GiveUp,
    ParkBackoff,
    Recovery,
    RetryHere,
    backoff_s,
    classify,
    next_move,
)
from workers.providers.faults import CallCut, CallFailed, ProviderCut
from workers.providers.replies import Partial
from workers.providers.translate import retry_after_s

RETRY = {"retry": True, "fatal": False, "compress": False}
FATAL = {"retry": False, "fatal": True, "compress": False}
OVERFLOW = {"retry": False, "fatal": False, "compress": True}

SPILL = {"retry": False, "fatal": False, "compress": False, "spill": True}

LONG = "prompt is too long: 205000 tokens > 200000 maximum"
LONG_OF_OLD = "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"

ACTS = (
    "retry", "park", "compress", "spill", "refresh", "rotate_credential", "fall_back", "cools", "rests",
    "drop_reasoning",
)  # fmt: skip
OUT = {"retry", "park", "fall_back", "rests"}
BUSY = {"retry", "park", "fall_back", "rotate_credential", "cools"}
KEY_GONE = {"rotate_credential", "fall_back", "cools"}
KEY_WRONG = KEY_GONE | {"refresh"}
UNSIGNED = {"drop_reasoning", "fall_back"}
OUTAGES = {
    "provider_unreachable": "unreachable", "provider_connection_lost": "connection_lost",
    "provider_connect_timeout": "timeout", "provider_write_timeout": "timeout",
    "provider_first_byte_timeout": "timeout", "provider_stalled": "stalled", "provider_cut": "stream_cut",
    "provider_empty": "empty", "provider_bad_stream": "stream_garbled", "provider_tls": "tls",
}  # fmt: skip
WRONG = {
    "provider_tls_certificate": "ssl_cert_verification", "provider_not_a_stream": "not_an_api",
    "provider_encoded": "encoded", "provider_total_timeout": "too_slow", "reply_too_large": "reply_too_large",
    "unexpected_block": "unexpected_block", "provider_not_configured": "not_configured",
}  # fmt: skip


def _answer(
    status: int, said: str, *, kind: str | None = None, code: str = "c_c", upstream: bool = False, began: bool = False
) -> CallFailed:
    return CallFailed(
        "m", code=code, http_status=status, kind=kind, said=said, upstream=upstream, partial=Partial(began=began)
    )


def _within(kind: str, *, began: bool = False) -> CallFailed:
    """An exception in a stream of Bedrock's, with the code that `translate` makes of it."""
    code = "".join(f"_{one.lower()}" if one.isupper() else one for one in kind)
    return _answer(200, "x", kind=kind, code=code, began=began)


ON_DEMAND = "on-demand throughput isn\u2019t supported. Retry with the ID of an inference profile."
ANSWERED: list[tuple[int, str, str, float | None, dict[str, Any], str]] = [
    # status, kind, the provider's words, retry-after, what is done, the code that a person sees
    (400, "invalid_request_error", "messages: text content blocks must be non-empty", None, FATAL, "said"),
    (
        400,
        "invalid_request_error",
        "prompt is too long: 205000 tokens > 200000 maximum",
        None,
        OVERFLOW,
        "context_overflow",
    ),
    (
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 1 + 8 > 2",
        None,
        OVERFLOW,
        "context_overflow",
    ),
    (400, "context_length_exceeded", "too many", None, OVERFLOW, "context_overflow"),
    (413, "request_too_large", "Request exceeds the maximum size", None, SPILL, "said"),
    (413, "request_too_large", "prompt is too long", None, SPILL, "said"),
    (400, "invalid_request_error", "Your credit balance is too low", None, FATAL, "provider_money"),
    (401, "authentication_error", "invalid x-api-key", None, FATAL, "said"),
    (402, "billing_error", "pay", None, FATAL, "provider_money"),
    (403, "permission_error", "no", None, FATAL, "said"),
    (404, "not_found_error", "model: nope", None, FATAL, "said"),
    (408, "timeout_error", "", None, RETRY, "said"),
    (409, "conflict_error", "", None, RETRY, "said"),
    (422, "invalid_request_error", "", None, FATAL, "said"),
    (429, "rate_limit_error", "This request would exceed your rate limit", 3.0, RETRY, "said"),
    (429, "rate_limit_error", "This request would exceed your rate limit", None, RETRY, "said"),
    (429, "rate_limit_error", "workspace spend limit reached", None, FATAL, "provider_money"),
    (429, "rate_limit_error", "workspace spend limit reached", 5.0, RETRY, "said"),
    (429, "insufficient_quota", "You exceeded your current quota", None, FATAL, "provider_money"),
    (500, "api_error", "", None, RETRY, "said"),
    (502, "http_502", "", None, RETRY, "said"),
    (503, "http_503", "", 30.0, RETRY, "said"),
    (504, "timeout_error", "", None, RETRY, "said"),
    (524, "http_524", "", None, RETRY, "said"),
    (529, "overloaded_error", "Overloaded", None, RETRY, "said"),
    (307, "http_307", "", None, FATAL, "said"),
    (418, "http_418", "", None, FATAL, "said"),
    (200, "overloaded_error", "Overloaded", None, RETRY, "said"),
    (200, "invalid_request_error", "prompt is too long: 5 > 4", None, OVERFLOW, "context_overflow"),
    (200, "permission_error", "", None, FATAL, "said"),
    (200, "something_new", "", None, RETRY, "said"),
]


@pytest.mark.parametrize(("status", "kind", "said", "after", "done", "code"), ANSWERED)
def test_an_answered_error_is_judged_by_its_row(
    status: int, kind: str, said: str, after: float | None, done: dict[str, Any], code: str
) -> None:
    error = CallFailed("m", code=kind, http_status=status, kind=kind, said=said, retry_after_s=after)
    recovery = classify(error)
    assert {name: getattr(recovery, name) for name in done} == done
    assert recovery.code == (kind if code == "said" else code)
    assert recovery.wait_s == (after if done is RETRY else None)


@pytest.mark.parametrize(
    ("code", "retry"),
    [
        ("provider_unreachable", True),
        ("provider_connection_lost", True),
        ("provider_connect_timeout", True),
        ("provider_write_timeout", True),
        ("provider_first_byte_timeout", True),
        ("provider_stalled", True),
        ("provider_cut", True),
        ("provider_empty", True),
        ("provider_bad_stream", True),
        ("provider_tls", True),
        ("provider_tls_certificate", False),
        ("provider_not_a_stream", False),
        ("provider_encoded", False),
        ("provider_total_timeout", False),
        ("reply_too_large", False),
        ("unexpected_block", False),
    ],
)
def test_an_error_below_http_is_judged_by_its_code(code: str, retry: bool) -> None:
    for kind in (CallFailed, ProviderCut):
        recovery = classify(kind("m", code=code))
        assert (recovery.code, recovery.retry, recovery.fatal) == (code, retry, not retry)


KINDS: list[tuple[CallFailed, str, set[str]]] = [
    (_answer(400, "prompt is too long: 5 > 4"), "context_overflow", {"compress"}),
    (_answer(400, "request (9 tokens) exceeds the available context size"), "context_overflow", {"compress"}),
    (_answer(429, "Extra usage is required for long context requests"), "long_context_tier", {"compress"}),
    (_answer(400, "The long context beta is not yet available"), "oauth_long_context_beta_forbidden", {"fall_back"}),
    (_answer(413, ""), "payload_too_large", {"spill"}),
    (_answer(400, "image exceeds 5 MB maximum"), "image_too_large", set()),
    (_answer(402, "pay"), "billing", KEY_GONE),
    (_answer(429, "insufficient_quota"), "billing", KEY_GONE),
    (_answer(400, "Your credit balance is too low"), "billing", KEY_GONE),
    (_answer(400, "messages.1: Invalid `signature` in `thinking` block"), "thinking_signature", UNSIGNED),
    (_answer(400, "x", code="invalid_encrypted_content"), "invalid_encrypted_content", UNSIGNED),
    (_answer(401, "", code="account_deactivated"), "auth_permanent", KEY_GONE),
    (_answer(404, "No endpoints found matching your data policy"), "provider_policy_blocked", {"fall_back"}),
    (_answer(403, "unsupported_country_region_territory"), "provider_policy_blocked", {"fall_back"}),
    (_answer(400, "", code="content_filter"), "content_policy_blocked", {"fall_back"}),
    (_answer(401, "invalid x-api-key"), "auth", KEY_WRONG),
    (_answer(400, "API key not valid. Please pass a valid API key."), "auth", KEY_WRONG),
    (_answer(403, "no"), "permission", KEY_WRONG),
    (_answer(404, "model: nope"), "model_not_found", {"fall_back"}),
    (_answer(400, "nope is not a valid model ID"), "model_not_found", {"fall_back"}),
    (_answer(429, "Provider returned error", upstream=True), "upstream_rate_limit", OUT),
    (_answer(429, "x is temporarily rate-limited upstream"), "upstream_rate_limit", OUT),
    (_answer(200, "", kind="rate_limit_error", began=True), "upstream_rate_limit", OUT),
    (_answer(429, "quota of GenerateRequestsPerDayPerProject"), "daily_limit", KEY_GONE),
    (_answer(429, "the model is overloaded"), "overloaded", BUSY),
    (_answer(429, "slow down"), "rate_limit", BUSY),
    (_answer(200, "", kind="rate_limit_error"), "rate_limit", BUSY),
    (_answer(503, "Loading model"), "loading", OUT),
    (_answer(503, ""), "overloaded", BUSY),
    (_answer(529, ""), "overloaded", BUSY),
    (_answer(200, "", kind="overloaded_error", began=True), "overloaded", BUSY),
    (_answer(500, "no user query found in messages"), "format_error", {"fall_back"}),
    (_answer(500, "failed to parse grammar"), "llama_cpp_grammar", {"fall_back"}),
    (_answer(400, "tool message content must be a string"), "multimodal_tool_content", {"fall_back"}),
    (_answer(408, ""), "timeout", OUT),
    (_answer(504, ""), "timeout", OUT),
    (_answer(409, ""), "conflict", {"retry"}),
    (_answer(307, ""), "redirected", {"fall_back"}),
    (_answer(400, "messages.1: `tool_use` ids were found without"), "transcript_refused", {"fall_back"}),
    (_answer(400, "messages.0.ts: Extra inputs are not permitted"), "unsupported_parameter", {"fall_back"}),
    (_answer(422, "something else"), "format_error", {"fall_back"}),
    (_answer(500, ""), "server_error", OUT),
    (_answer(200, "", kind="something_new"), "server_error", OUT),
    (_answer(418, ""), "unknown", {"fall_back"}),
    (_answer(403, "The security token included in the request is expired"), "auth", KEY_WRONG),
    (_answer(403, "x", kind="InvalidSignatureException"), "auth", KEY_WRONG),
    (
        _answer(403, "You don't have access to the model with the specified model ID."),
        "model_not_enabled",
        {"fall_back"},
    ),
    (_answer(400, "The provided model identifier is invalid."), "model_not_found", {"fall_back"}),
    (_answer(400, f"Invocation of model ID m with {ON_DEMAND}"), "model_not_found", {"fall_back"}),
    (_answer(400, "x", kind="ServiceQuotaExceededException"), "quota", KEY_GONE),
    (_answer(429, "x", kind="ModelNotReadyException"), "loading", OUT),
    (_answer(424, "x", kind="ModelErrorException"), "server_error", OUT),
    (_answer(400, "Input is too long for requested model."), "context_overflow", {"compress"}),
    (_answer(400, "Expected toolResult blocks at messages.2.content"), "transcript_refused", {"fall_back"}),
    (_answer(400, "Malformed input request: #: extraneous key [k]"), "unsupported_parameter", {"fall_back"}),
    (_answer(400, "Output blocked by content filtering policy"), "content_policy_blocked", {"fall_back"}),
    (_answer(429, "Too many tokens per day, please wait", kind="ThrottlingException"), "daily_limit", KEY_GONE),
    (_within("throttlingException", began=True), "rate_limit", BUSY),
    (_within("throttlingException"), "rate_limit", BUSY),
    (_within("validationException"), "format_error", {"fall_back"}),
    (_within("modelStreamErrorException", began=True), "server_error", OUT),
    (_within("modelTimeoutException", began=True), "timeout", OUT),
    (_within("internalServerException", began=True), "server_error", OUT),
    (_within("serviceUnavailableException", began=True), "overloaded", BUSY),
    (CallFailed("m", code="bedrock_extra_missing"), "not_configured", {"fall_back"}),
    *((CallFailed("m", code=code), kind, OUT) for code, kind in OUTAGES.items()),
    (CallFailed("m", code="provider_resting"), "resting", OUT - {"rests"}),
    *((CallFailed("m", code=code), kind, {"fall_back"}) for code, kind in WRONG.items()),
    (CallFailed("m", code="body_too_large"), "body_too_large", {"spill"}),
]
"""An error of each kind, and all that is done about it."""


@pytest.mark.parametrize(("error", "kind", "done"), KINDS, ids=[f"{at} {row[1]}" for at, row in enumerate(KINDS)])
def test_each_kind_is_known_and_does_what_its_row_says_and_nothing_else(
    error: CallFailed, kind: str, done: set[str]
) -> None:
    recovery = classify(error)
    on = {name for name in ACTS if getattr(recovery, name)}
    assert (recovery.kind, on) == (kind, done)
    assert recovery.fatal is not bool(done & {"retry", "compress", "spill"})
    if recovery.fatal:  # a deterministic failure ends in one attempt
        assert next_move(recovery, 1, random.Random(1)) == GiveUp()


def test_every_row_of_the_table_has_an_error_that_only_it_fits_and_says_where_it_is_from() -> None:
    rows = (*kinds.ANSWERED, *kinds.OF_WIRE, kinds.SERVER, kinds.UNKNOWN)
    assert {row[1] for row in KINDS} == {row.kind for row in rows}
    assert len({row.kind for row in rows}) >= 23
    assert all(row.source for row in rows)


def test_every_row_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any one of its rows, the table judges one of these errors otherwise."""
    before = [classify(row[0]) for row in KINDS]
    for name in ("ANSWERED", "OF_WIRE"):
        rows: tuple[kinds.Row, ...] = getattr(kinds, name)
        for at in range(len(rows)):
            with monkeypatch.context() as less:
                less.setattr(kinds, name, rows[:at] + rows[at + 1 :])
                assert [classify(row[0]) for row in KINDS] != before, rows[at]


def test_our_own_cut_and_a_foreign_error_are_not_retried() -> None:
    assert classify(CallCut("a person")) == Recovery("call_cut", "the call to the model was stopped: a person")
    assert classify(ProviderError("odd")) == Recovery("provider_error", "odd", fatal=True)


def test_a_failure_that_a_person_must_mend_says_how() -> None:
    for status, word in (
        (401, "NIGHTSHIFT_PROVIDER_KEY"),
        (404, "NIGHTSHIFT_MODEL"),
        (402, "credit"),
        (307, "BASE_URL"),
    ):
        assert word in classify(CallFailed("m", code="c_c", http_status=status)).why


def test_a_short_wait_is_waited_here_and_a_long_one_parks() -> None:
    rng = random.Random(1)
    asked = [
        next_move(Recovery("c", "m", retry=True, park=True, wait_s=seconds), 1, rng)
        for seconds in (0.0, 3.0, 6.0, 600.0)
    ]
    assert [type(move) for move in asked] == [RetryHere, RetryHere, ParkBackoff, ParkBackoff]
    assert isinstance(asked[3], ParkBackoff)
    assert 600.0 <= asked[3].wait_s <= 601.0


def test_waits_grow_then_park_then_end() -> None:
    rng = random.Random(1)
    moves = [next_move(Recovery("c", "m", retry=True, park=True), tries, rng) for tries in range(1, TRIES + 2)]
    kinds = [type(move) for move in moves]
    assert kinds == [RetryHere] * 4 + [ParkBackoff] * (TRIES - 5) + [GiveUp] * 2
    assert all(move.wait_s <= IN_PLACE_S for move in moves if isinstance(move, RetryHere))
    assert next_move(Recovery("c", "m"), 1, rng) == GiveUp()
    assert next_move(Recovery("c", "m", retry=True), 5, rng) == GiveUp()  # no outage: nothing to sleep for


def test_a_wait_is_never_shorter_than_asked_and_two_workers_do_not_come_back_as_one() -> None:
    waits = {
        move.wait_s
        for seed in range(50)
        if isinstance(
            move := next_move(Recovery("c", "m", retry=True, park=True, wait_s=2.0), 2, random.Random(seed)), RetryHere
        )
    }
    assert min(waits) >= 2.0
    assert len(waits) == 50


@pytest.mark.parametrize("tries", [0, 1, 2, 5, 11, 12, 20, 10_000])
def test_the_backoff_is_bounded(tries: int) -> None:
    drawn = [backoff_s(tries, random.Random(seed)) for seed in range(20)]
    top = min(0.5 * 2.0 ** (min(max(tries, 1), 20) - 1), 900.0)
    assert all(top / 2 <= seconds <= top for seconds in drawn)


NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:00 GMT"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(httpx2.Headers(headers), NOW) == seconds


def test_an_absurd_retry_after_is_not_believed() -> None:
    error = CallFailed("m", code="rate_limit_error", http_status=429, retry_after_s=timedelta(days=49).total_seconds())
    assert classify(error).wait_s == 3_600.0

"""What is done about each failure: a table, judged without any network."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from shared.errors import ProviderError
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
from workers.providers.translate import retry_after_s

RETRY = {"retry": True, "fatal": False, "overflow": False}
FATAL = {"retry": False, "fatal": True, "overflow": False}
OVERFLOW = {"retry": False, "fatal": False, "overflow": True}

LONG = "prompt is too long: 205000 tokens > 200000 maximum"
LONG_OF_OLD = "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"

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
    (413, "request_too_large", "Request exceeds the maximum size", None, FATAL, "said"),
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
    assert recovery.cools is (done is RETRY and (status in (429, 529) or kind == "overloaded_error"))


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
        assert word in classify(CallFailed("m", code="c_c", http_status=status)).message


def test_a_short_wait_is_waited_here_and_a_long_one_parks() -> None:
    rng = random.Random(1)
    asked = [next_move(Recovery("c", "m", retry=True, wait_s=seconds), 1, rng) for seconds in (0.0, 3.0, 6.0, 600.0)]
    assert [type(move) for move in asked] == [RetryHere, RetryHere, ParkBackoff, ParkBackoff]
    assert isinstance(asked[3], ParkBackoff)
    assert 600.0 <= asked[3].wait_s <= 601.0


def test_waits_grow_then_park_then_end() -> None:
    rng = random.Random(1)
    moves = [next_move(Recovery("c", "m", retry=True), tries, rng) for tries in range(1, TRIES + 2)]
    kinds = [type(move) for move in moves]
    assert kinds == [RetryHere] * 4 + [ParkBackoff] * (TRIES - 5) + [GiveUp] * 2
    assert all(move.wait_s <= IN_PLACE_S for move in moves if isinstance(move, RetryHere))
    assert next_move(Recovery("c", "m"), 1, rng) == GiveUp()


def test_a_wait_is_never_shorter_than_asked_and_two_workers_do_not_come_back_as_one() -> None:
    waits = {
        move.wait_s
        for seed in range(50)
        if isinstance(move := next_move(Recovery("c", "m", retry=True, wait_s=2.0), 2, random.Random(seed)), RetryHere)
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

"""Owns what is done about a call that failed. Pure: an error goes in, a Recovery comes out, and the loop acts.

Invariant: nothing is retried that the provider will refuse again, and nothing is retried for ever.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from shared.errors import ProviderError
from workers.providers.faults import CallCut, CallFailed

IN_PLACE_S = 5.0
"""A longer wait parks the turn, so that it holds no slot."""
IN_PLACE_TRIES = 4
TRIES = 16
"""With the waits below about an hour of an outage."""
LONGEST_ASKED_S = 3_600.0
"""A longer `retry-after` is not believed; the next try asks again."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """`wait_s` is what the provider asked for, None where it left that to us. `overflow`: the prompt is too long,
    reduce it. `fatal`: a person must change something first. `cools` the credential for every worker."""

    code: str
    message: str
    retry: bool = False
    wait_s: float | None = None
    overflow: bool = False
    fatal: bool = False
    cools: bool = False


@dataclass(frozen=True, slots=True)
class RetryHere:
    wait_s: float


@dataclass(frozen=True, slots=True)
class ParkBackoff:
    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    pass


NextMove = RetryHere | ParkBackoff | GiveUp

OVERFLOW = (
    "prompt is too long",  # Anthropic
    "exceed context limit",  # Anthropic, older
    "model_context_window_exceeded",  # Anthropic
    "context_length_exceeded",  # OpenAI and its kind
    "maximum context length",  # OpenAI, older, vLLM
    "context window",
)
"""Words of a 400 that mean: reduce the context and try again. Source: the providers' documents and public issues."""

CONTEXT_OVERFLOW = "context_overflow"
"""The code of a call, or of a turn, whose conversation no longer fits the model's window."""

REASONING_REFUSED = "reasoning_refused"
"""A 400 about the signature of a thinking block: its prefix, key or model is another now. Sent without it, the call
goes through. Source: Anthropic, preserved thinking (the text of the error)."""

SPENT = ("spend limit", "spending limit", "spend cap", "usage limit", "credit balance", "insufficient_quota", "billing")
"""Words of a 429 or 400 that mean: money. It never succeeds by waiting. Source: Anthropic (a spend-cap 429 carries no
retry-after), OpenAI (`insufficient_quota`)."""

_RETRIED = {
    # code of the wire: why another try may succeed
    "provider_unreachable": "refused, or no such name: transient more often than not",
    "provider_connection_lost": "also a pooled connection that the other side had just closed",
    "provider_connect_timeout": "the SDK's own policy retries connection errors",
    "provider_write_timeout": "the SDK's own policy retries connection errors",
    "provider_first_byte_timeout": "the SDK's own policy retries time-outs",
    "provider_stalled": "a stream sends pings; silence means that it is gone",
    "provider_cut": "a clean end before message_stop is no end, though the SDK reports none",
    "provider_empty": "a proxy that lost its other side",
    "provider_bad_stream": "seen of proxies that drop bytes",
    "provider_tls": "a handshake that broke off",
}
_NOT_RETRIED = {
    "provider_tls_certificate": "check NIGHTSHIFT_PROVIDER_BASE_URL, this machine's clock and its CA file",
    "provider_not_a_stream": "check that NIGHTSHIFT_PROVIDER_BASE_URL is the address of the provider's API",
    "provider_encoded": "turn the compression of the proxy before the provider off",
    "provider_total_timeout": "ask for less output, or for the work in smaller parts",
    "reply_too_large": "no model says that much; check what answers at NIGHTSHIFT_PROVIDER_BASE_URL",
    "unexpected_block": "the model used a feature that was not asked for; check the model's settings",
}
_STATUS = {
    # HTTP status: (retry, what a person can do)              source: the provider's error page (D) unless said
    301: (False, "it redirects: set NIGHTSHIFT_PROVIDER_BASE_URL to the address it names"),
    302: (False, "it redirects: set NIGHTSHIFT_PROVIDER_BASE_URL to the address it names"),
    307: (False, "it redirects: set NIGHTSHIFT_PROVIDER_BASE_URL to the address it names"),
    308: (False, "it redirects: set NIGHTSHIFT_PROVIDER_BASE_URL to the address it names"),
    400: (False, "the request was refused; the sentence says why"),
    401: (False, "the key is wrong or was withdrawn: set NIGHTSHIFT_PROVIDER_KEY"),
    402: (False, "the account has no money left: add credit at the provider"),
    403: (False, "the key may not do this: check its rights and its workspace at the provider"),
    404: (False, "no such model or address: check NIGHTSHIFT_MODEL and NIGHTSHIFT_PROVIDER_BASE_URL"),
    408: (True, "the provider timed out"),
    409: (True, "the provider saw a conflict"),
    413: (False, "the request is larger than the provider takes"),
    422: (False, "the request was refused; the sentence says why"),
    429: (True, "the provider's rate limit is reached"),
    529: (True, "the provider is overloaded"),
}
_KIND_STATUS = {
    # `error.type` of an event inside a 200, which carries no status of its own
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def classify(error: ProviderError) -> Recovery:
    """What to do about an error of the wire. The tables are the law; texts only tell an overflow and spent money."""
    if isinstance(error, CallCut):
        return Recovery("call_cut", error.message)
    if not isinstance(error, CallFailed):
        return Recovery(error.code, error.message, fatal=True)
    if error.http_status is None:
        return _of_wire(error)
    status = error.http_status
    if status == 200:
        status = _KIND_STATUS.get(error.kind or "", 500)
    words = f"{error.kind} {error.code} {error.said}".lower()
    if status in (400, 413, 422) and any(word in words for word in OVERFLOW):
        return Recovery(CONTEXT_OVERFLOW, "the conversation no longer fits the model's window", overflow=True)
    if status in (400, 402, 403, 429) and any(word in words for word in SPENT) and error.retry_after_s is None:
        return Recovery("provider_money", _say(error, _STATUS[402][1]), fatal=True)
    if status == 400 and "signature" in words and "thinking" in words:
        return Recovery(REASONING_REFUSED, "the provider no longer accepts its own signed reasoning", fatal=True)
    retry, advice = _STATUS.get(status, (status >= 500, "the provider failed" if status >= 500 else "it was refused"))
    return Recovery(
        error.code,
        _say(error, advice),
        retry=retry,
        wait_s=_asked(error) if retry else None,
        fatal=not retry,
        cools=status in (429, 529),
    )


def next_move(recovery: Recovery, tries: int, rng: random.Random) -> NextMove:
    """After `tries` failed calls in a row: again here, again later with the slot given back, or not again."""
    if not recovery.retry or tries >= TRIES:
        return GiveUp()
    wait_s = backoff_s(tries, rng)
    if recovery.wait_s is not None:  # never earlier than asked; the jitter on top keeps a fleet from coming back as one
        wait_s = recovery.wait_s + min(wait_s, 1.0) * rng.random()
    return RetryHere(wait_s) if wait_s <= IN_PLACE_S and tries <= IN_PLACE_TRIES else ParkBackoff(wait_s)


def backoff_s(tries: int, rng: random.Random) -> float:
    """Seconds before the next try: doubling from half a second to fifteen minutes, each drawn from its upper half."""
    return min(0.5 * 2.0 ** (min(max(tries, 1), 20) - 1), 900.0) * (0.5 + rng.random() / 2)


def _of_wire(error: CallFailed) -> Recovery:
    if error.code in _RETRIED:
        return Recovery(error.code, error.message, retry=True)
    advice = _NOT_RETRIED.get(error.code)
    return Recovery(error.code, f"{error.message}: {advice}" if advice else error.message, fatal=True)


def _asked(error: CallFailed) -> float | None:
    return None if error.retry_after_s is None else min(error.retry_after_s, LONGEST_ASKED_S)


def _say(error: CallFailed, advice: str) -> str:
    return f"{error.message} ({advice})"

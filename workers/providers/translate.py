"""Owns how what went wrong below becomes one error of ours: from the SDK, from httpx, from sockets, from the stream."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import anthropic
import httpx2

from shared.providers import aws
from shared.text import clean_text
from workers.providers.faults import CallFailed, Limits, ProviderCut
from workers.providers.replies import Partial
from workers.providers.sockets import Line

SAID_LIMIT = 500
_CODE = re.compile(r"[a-z][a-z0-9_]{2,63}", re.ASCII)
_KEPT = ("anthropic-ratelimit-", "x-ratelimit-", "retry-after")
_ID_HEADERS = ("request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
_AWS_KIND = "x-amzn-errortype"
_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a call when it fails."""

    key: str
    line: Line
    partial: Partial
    request_id: str | None
    limits: Limits

    def failed(
        self, code: str, message: str, *, said: str = "", http_status: int | None = None, cut: bool = False
    ) -> CallFailed:
        kind = ProviderCut if cut or self.partial.began else CallFailed
        return kind(
            message,
            code=code,
            http_status=http_status,
            said=self.shown(said),
            request_id=self.request_id,
            partial=self.partial,
            limits=self.limits,
        )

    def shown(self, text: str) -> str:
        """A provider's words, fit for a log: bounded, without the key, which some servers echo."""
        hidden = text
        for secret in aws.secrets_in(self.key):
            hidden = hidden.replace(secret, "[key]") if secret else hidden
        return clean_text(" ".join(hidden[: 8 * SAID_LIMIT].split()))[:SAID_LIMIT]


def kept_headers(headers: httpx2.Headers) -> Limits:
    return tuple((name.lower(), value) for name, value in headers.items() if name.lower().startswith(_KEPT))


def request_id(headers: httpx2.Headers) -> str | None:
    """By what name the provider knows this call."""
    return next((found[:200] for name in _ID_HEADERS if (found := headers.get(name))), None)


def error_within(told: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error inside a 200, in the one form that `of_answer` reads; None where there is none.

    An `error` event of Anthropic's, an `error` member (aggregators, in a chunk, a choice or the whole body), an `error`
    event of the Responses API without one, a response that failed.
    """
    inner: object = told.get("error")
    if isinstance(inner, dict) or (isinstance(inner, str) and inner):
        return {**told, "error": inner if isinstance(inner, dict) else {"message": inner}}
    if told.get("type") == "error":
        return {"error": {"type": told.get("code"), "message": told.get("message"), "code": told.get("code")}}
    response = _member(told, "response") if told.get("type") == "response.failed" else told
    if told.get("type") == "response.failed" or (told.get("object"), told.get("status")) == ("response", "failed"):
        failed = _member(response, "error")
        return {"error": {"type": failed.get("code") or "server_error", **failed}}
    if isinstance(told.get("__type"), str):
        return {"error": {"type": _bare(told["__type"]), "message": told.get("message")}}
    choices: object = told.get("choices")
    first = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    of_choice = _told(cast("object", first))
    return {"error": of_choice} if of_choice else None


def of_connection(error: Exception, context: Context) -> CallFailed:
    """A call that ended below HTTP: no name, no connection, no certificate, no time, no bytes."""
    line = context.line
    if line.flooded:
        return context.failed(
            "reply_too_large", "the provider's answer is larger than any honest one; it was not read on"
        )
    if line.timed_out is not None:
        return _timed_out(line, context)
    causes = list(_chain(error))
    certificate = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        return context.failed(
            "provider_tls_certificate",
            "the provider's certificate is not trusted: check NIGHTSHIFT_PROVIDER_BASE_URL, the clock and the CA file",
            said=str(certificate),
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return context.failed(
            "provider_tls", "no secure connection to the provider could be made", said=str(causes[-1])
        )
    if any(isinstance(cause, httpx2.ConnectError) for cause in causes):
        return context.failed("provider_unreachable", "the provider cannot be reached", said=str(causes[-1]))
    if context.partial.began:
        return context.failed("provider_cut", "the provider's answer broke off before its end", said=str(error))
    return context.failed("provider_connection_lost", "the connection to the provider broke", said=str(causes[-1]))


def of_status(error: anthropic.APIStatusError, context: Context) -> CallFailed:
    """An answer that is not 200, or an `error` event inside one that is."""
    return of_answer(error.status_code, error.body, error.response.headers, context)


def of_answer(status: int, body: object, headers: httpx2.Headers, context: Context) -> CallFailed:
    told = _told(body)
    kind = told.get("type") if isinstance(told.get("type"), str) else _of_header(headers)
    message = told.get("message")
    said = message if isinstance(message, str) else body if isinstance(body, str) else ""
    details = told.get("details")
    stable = cast("Mapping[str, Any]", details).get("error_code") if isinstance(details, dict) else told.get("code")
    if status == 200 and type(stable) is int and 400 <= stable < 600:  # an aggregator tells a status inside its 200
        status = stable
    known_as = request_id(headers) or _outer_id(body) or context.request_id
    cut = context.partial.began
    return (ProviderCut if cut else CallFailed)(
        _sentence(status, cut=cut, said=context.shown(said)),
        code=_code(stable) or _code(kind) or f"http_{status}",
        http_status=status,
        kind=kind,
        said=context.shown(said),
        request_id=known_as[:200] if known_as else None,
        retry_after_s=retry_after_s(headers),
        partial=context.partial,
        limits=kept_headers(headers),
        upstream=bool(_member(told, "metadata").get("provider_name")),
    )


def retry_after_s(headers: httpx2.Headers, now: datetime | None = None) -> float | None:
    """Seconds the provider asks us to wait; None where it does not say so in a way that can be read."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        told = headers.get(name)
        if told is None:
            continue
        try:
            seconds = float(told) * scale
        except ValueError:
            seconds = _until(told, now or datetime.now(UTC))
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _until(told: str, now: datetime) -> float:
    try:
        at = parsedate_to_datetime(told)
    except (ValueError, TypeError):
        return math.nan
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)


def _timed_out(line: Line, context: Context) -> CallFailed:
    match line.timed_out:
        case "connect":
            return context.failed(
                "provider_connect_timeout", f"the provider was not reached within {line.connect_s:g} s"
            )
        case "write":
            return context.failed("provider_write_timeout", f"the provider took no bytes for {line.write_s:g} s")
        case "total":
            return context.failed("provider_total_timeout", "the call took longer in all than a call may take")
        case _ if context.partial.began:
            return context.failed("provider_stalled", f"the provider's answer stood still for {line.between_s:g} s")
        case _:
            return context.failed("provider_first_byte_timeout", "the provider did not begin to answer in time")


def _chain(error: BaseException) -> Iterable[BaseException]:
    at: BaseException | None = error
    for _ in range(20):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__


def _told(body: object) -> Mapping[str, Any]:
    """The `error` object of a body; OpenAI-style servers leave the envelope out. AWS has its sentence in the body
    itself, written one way or the other, and its kind in a header."""
    if not isinstance(body, dict):
        return {}
    whole = cast("Mapping[str, Any]", body)
    inner = whole.get("error")
    if isinstance(inner, dict):
        return cast("Mapping[str, Any]", inner)
    message = whole.get("message", whole.get("Message"))
    return {"message": message, "type": _bare(whole.get("__type"))} if isinstance(message, str) else {}


def _of_header(headers: httpx2.Headers) -> str | None:
    return _bare(headers.get(_AWS_KIND))


def _bare(told: object) -> str | None:
    """`ThrottlingException` out of what AWS makes of it: with a name space before it and an address behind."""
    return told.partition(":")[0].rpartition("#")[2][:80] or None if isinstance(told, str) else None


def _member(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: object = told.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _code(told: object) -> str | None:
    """A provider's own code, if it looks like one: it becomes ours, and codes stand in logs and metrics."""
    if not isinstance(told, str):
        return None
    if told.endswith("Exception") and told.isalpha():  # AWS's
        told = _HUMP.sub("_", told).lower()
    return told if _CODE.fullmatch(told) else None


def _outer_id(body: object) -> str | None:
    told = cast("Mapping[str, Any]", body).get("request_id") if isinstance(body, dict) else None
    return told if isinstance(told, str) else None


def _sentence(status: int, *, cut: bool, said: str) -> str:
    where = "in the middle of its answer" if cut else f"with HTTP {status}"
    return f"the provider ended the call {where}" + (f": {said}" if said else "")

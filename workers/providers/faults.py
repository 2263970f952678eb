"""Owns the errors of the wire: every way a call can fail is one of three classes, with a stable code and a sentence.

Invariant: no text of an error holds the API key, and none is longer than a screen.

    ProviderError (shared.errors)
    ├── CallFailed       the provider refused, or could not be reached; nothing of an answer may be used
    │   └── ProviderCut  a stream that had begun ended before its last event
    └── CallCut          we stopped the call
"""

from __future__ import annotations

from shared.errors import ProviderError
from workers.providers.replies import Partial

NOTHING = Partial()
Limits = tuple[tuple[str, str], ...]


class CallFailed(ProviderError):
    """`http_status` is what the provider answered, None where it did not; `said` its own text, bounded, without key;
    `upstream`: an aggregator tells of the server behind it."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        http_status: int | None = None,
        kind: str | None = None,
        said: str = "",
        request_id: str | None = None,
        retry_after_s: float | None = None,
        partial: Partial = NOTHING,
        limits: Limits = (),
        upstream: bool = False,
    ) -> None:
        super().__init__(message, code=code)
        self.http_status = http_status
        self.kind = kind
        self.said = said
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        self.partial = partial
        self.limits = limits
        self.upstream = upstream


class ProviderCut(CallFailed):
    """The tokens of `partial` are billed and lost; its text may be shown and is void once the call is repeated."""


class CallCut(ProviderError):
    """Stopped by us (`reason` as given to `Cancel.cancel`); its output so far is billed."""

    code = "call_cut"

    def __init__(self, reason: str, *, partial: Partial = NOTHING, request_id: str | None = None) -> None:
        super().__init__(f"the call to the model was stopped: {reason}")
        self.reason = reason
        self.partial = partial
        self.request_id = request_id

"""Owns the provider's error values: type, HTTP status and body as the real service shapes them."""

from typing import Final

STATUS_OF: Final = {
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
TYPE_OF: Final = {status: kind for kind, status in STATUS_OF.items()}


class Refused(Exception):
    """The request is answered with an error; `kind` decides the status."""

    def __init__(self, message: str, kind: str = "invalid_request_error", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.code = code

    @property
    def status(self) -> int:
        return STATUS_OF[self.kind]


def error_body(kind: str, message: str, request_id: str) -> dict[str, object]:
    """The body of an error answer, and the data of an `error` event."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}

"""Owns what botocore does for us on Bedrock's wire: it signs a request, and takes the frames of a stream apart. It
comes with the extra `bedrock`, and is asked for here alone.

Invariant: a frame is handed on only once its checksums are right, and no more than one honest frame is ever held.
"""

from __future__ import annotations

import importlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from shared.errors import SettingsError
from shared.providers import aws
from shared.providers.declaration import PATHS, Auth, Declaration
from shared.providers.resolve import KEY
from shared.request.dialect import Wire
from workers.providers import events

EVENTS = "application/vnd.amazon.eventstream"
MISSING = "bedrock_extra_missing"
_PRELUDE, _LEAST = 12, 16
_PARTS = ("auth", "awsrequest", "credentials", "eventstream")

Signed = Callable[[str, bytes], Mapping[str, str]]
"""The headers by which a request (address, body) proves whose it is."""


def ready(declared: Declaration) -> None:
    """Raises SettingsError (`bedrock_extra_missing`) where a provider needs the extra and it is not installed."""
    if declared.wire is Wire.CONVERSE or declared.auth is Auth.AWS:
        for part in _PARTS:
            _botocore(part)


def signer(key: str, declared: Declaration) -> Signed | None:
    """None for a bearer token, which is a header like any other. Raises SettingsError where the region is not told, or
    the access key is half of one."""
    if declared.auth is not Auth.AWS:
        return None
    found = aws.access(key)
    if found is None:
        if key.startswith(aws.BEGINS):  # a secret that would go out as a bearer token
            raise SettingsError(f"{KEY}: an access key of AWS is written id:secret, or id:secret:session token")
        return None
    where = aws.region(declared.base_url, os.environ)
    if where is None:
        raise SettingsError("AWS_REGION: it is not set, the address names no region, and a signature is for one")
    owner = _botocore("credentials").Credentials(found.id, found.secret, found.token)
    auth: Any = _botocore("auth").SigV4Auth(owner, "bedrock", where)
    made: Any = _botocore("awsrequest").AWSRequest

    def signed(url: str, body: bytes) -> Mapping[str, str]:
        request = made(method="POST", url=url, data=body, headers={"Content-Type": "application/json"})
        auth.add_auth(request)
        return {name: str(value) for name, value in request.headers.items()}

    return signed


def address(base_url: str, model: str, *, streamed: bool) -> str:
    """Where a model is asked; its name may hold colons and slashes."""
    return f"{base_url}{PATHS[Wire.CONVERSE]}/{quote(model, safe='')}/{'converse-stream' if streamed else 'converse'}"


def frames(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The event of each frame, in order: its payload, its kind as the type. An exception of the service comes as an
    `error`, in the form that `translate.error_within` reads. Raises NotAnEvent and TooLong."""
    buffer: Any = _botocore("eventstream").EventStreamBuffer()
    pending = bytearray()
    size = 0
    for chunk in chunks:
        pending += chunk
        while len(pending) >= (size or _PRELUDE):
            if not size:  # a length counts only once its own checksum is right
                _fed(buffer, bytes(pending[:_PRELUDE]))
                size = int.from_bytes(pending[:4], "big")
                if size > events.LINE_LIMIT:
                    raise events.TooLong(f"an event of more than {events.LINE_LIMIT:,} bytes")
                if size < _LEAST:
                    raise events.NotAnEvent("a frame that is shorter than its own head")
                continue
            yield from map(_event, _fed(buffer, bytes(pending[_PRELUDE:size])))
            del pending[:size]
            size = 0


def _fed(buffer: Any, data: bytes) -> list[Any]:
    try:
        buffer.add_data(data)
        return list(buffer)
    except (_botocore("eventstream").ParserError, ValueError, LookupError, struct.error) as error:
        raise events.NotAnEvent(f"a frame that is damaged ({type(error).__name__})") from error


def _event(message: Any) -> dict[str, Any]:
    headers: Mapping[str, object] = message.headers
    what = headers.get(":message-type")
    if what == "error":
        told = {"type": headers.get(":error-code"), "message": headers.get(":error-message")}
        return {"type": "exception", "error": told}
    payload = events.parse_object(message.payload)
    if what == "exception":
        return {"type": "exception", "error": {**payload, "type": headers.get(":exception-type")}}
    kind = headers.get(":event-type")
    if what != "event" or not isinstance(kind, str):
        raise events.NotAnEvent("a frame without its type")
    return {**payload, "type": kind}


def _botocore(part: str) -> Any:
    try:
        return importlib.import_module(f"botocore.{part}")
    except ImportError as error:
        raise SettingsError(
            "Bedrock needs boto3, which is not installed here: install nightshift[bedrock], or boto3 beside it",
            code=MISSING,
        ) from error

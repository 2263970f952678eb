"""Owns the one client of a process: the real SDK over our pool, retries and telemetry off, the environment not trusted.

Invariant: the API key goes into one header and nowhere else; no repr, log line or error holds it.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import anthropic
import httpx2
from anthropic import Omit
from anthropic._models import FinalRequestOptions  # the type of what is overridden below

from shared.errors import SettingsError
from shared.providers import aws as keys
from shared.providers.declaration import PATHS, Auth, Declaration
from shared.providers.resolve import URL, check_key, resolve
from shared.request.dialect import Wire
from workers.providers import aws
from workers.providers.transport import Connections, PooledTransport

PATH = PATHS[Wire.ANTHROPIC]
CONNECT_S = 5.0
READ_S = 90.0
"""The longest silence that is waited for, whatever a setting says: pings arrive in honest streams."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a model is. Proxies and authorities named by the environment are not used; `ca_file` replaces the usual.
    `declared` says what it is; where it does not, the wire and the address do."""

    base_url: str
    api_key: str = field(repr=False)
    kind: str = "anthropic"
    ca_file: str | None = None
    declared: Declaration | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What a wire says in the address where others say it in the body: the model, and whether the answer streams."""

    model: str = ""
    streamed: bool = True


@dataclass(frozen=True, slots=True)
class Client:
    """Shared by every thread of the process. Close it with `close_client` when the process ends. `sdk` is there on
    Anthropic's wire; the others are plain HTTP with `headers`, and those of `signed` where each request is signed."""

    provider: Provider
    declared: Declaration
    http: httpx2.Client = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    sdk: anthropic.Anthropic | None = field(repr=False)
    connections: Connections = field(repr=False)
    signed: aws.Signed | None = field(default=None, repr=False)


class _Sdk(anthropic.Anthropic):
    """The SDK, with what it works out anew for each call (its address, 19 headers) kept from the first one.

    Only a plain body of bytes to the same path is built so. The method is the SDK's own: should it lose its name, each
    call is built by the SDK again, to the same bytes.
    """

    _kept: httpx2.Request | None = None

    def _build_request(self, options: FinalRequestOptions, *, retries_taken: int = 0) -> httpx2.Request:
        body, kept = options.content, self._kept
        if not isinstance(body, bytes) or options.url != PATH or retries_taken:
            return super()._build_request(options, retries_taken=retries_taken)
        if kept is None:
            kept = super()._build_request(options, retries_taken=retries_taken)
            self._kept = httpx2.Request(
                kept.method, kept.url, headers=kept.headers, stream=httpx2.ByteStream(b""), extensions=kept.extensions
            )
            return kept
        request = httpx2.Request(
            kept.method, kept.url, headers=kept.headers, stream=httpx2.ByteStream(body), extensions=kept.extensions
        )
        request.headers["Content-Length"] = str(len(body))
        return request


_OPTIONS = FinalRequestOptions.construct(method="post", url=PATH)


def open_client(provider: Provider) -> Client:
    """A client, connected to nothing yet. Raises SettingsError when the provider cannot be what the settings say."""
    declared = provider.declared or _told(provider)
    if not provider.api_key or not provider.api_key.isascii() or not provider.api_key.isprintable():
        raise SettingsError("NIGHTSHIFT_PROVIDER_KEY: it must be printable ASCII without line ends (not shown)")
    check_key(provider.api_key, declared)
    aws.ready(declared)
    signed = aws.signer(provider.api_key, declared)
    for name in ("anthropic", "httpx2", "httpcore2"):  # at DEBUG they log whole requests: no prompt goes into a log
        logging.getLogger(name).setLevel(logging.WARNING)
    url = declared.base_url
    connections = Connections(_tls(provider) if url.startswith("https:") else None)
    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S, pool=CONNECT_S)
    http = httpx2.Client(
        transport=PooledTransport(connections),
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        base_url=url,
    )
    headers = _headers(provider.api_key, declared)
    sdk = _sdk(provider.api_key, url, http, headers, timeout) if declared.wire is Wire.ANTHROPIC else None
    return Client(provider, declared, http, headers, sdk, connections, signed)


def post(client: Client, body: bytes, target: Target) -> httpx2.Response:
    """The answer to a whole body, unread. On Anthropic's wire raises what the SDK raises: an answer that is no success
    is read and raised by it. On the others it is given back as it is.

    The form of the SDK that sends our bytes as they are: its typed events cost more than twice the time of orjson's.
    `request` is what its `post` calls, with options that are copied here and there worked out anew.
    """
    if client.sdk is None:
        declared = client.declared
        url = declared.base_url + PATHS[declared.wire]
        if declared.wire is Wire.CONVERSE:
            url = aws.address(declared.base_url, target.model, streamed=target.streamed)
        headers = client.headers if client.signed is None else {**client.headers, **client.signed(url, body)}
        return client.http.send(client.http.build_request("POST", url, content=body, headers=headers), stream=True)
    options = _OPTIONS.model_copy(update={"content": body})
    answer: object = client.sdk.request(httpx2.Response, options, stream=True, stream_cls=anthropic.Stream[object])
    return cast("httpx2.Response", answer)


def close_client(client: Client) -> None:
    client.http.close()


def _told(provider: Provider) -> Declaration:
    if not provider.base_url:
        raise SettingsError(f"{URL}: it is not set")
    return resolve(kind=provider.kind, provider=None, base_url=provider.base_url, model="")


def _sdk(
    key: str, url: str, http: httpx2.Client, headers: Mapping[str, str], timeout: httpx2.Timeout
) -> anthropic.Anthropic:
    return _Sdk(
        api_key=key,
        base_url=url,
        max_retries=0,  # retries are ours: each is a call of its own, with its own bill
        timeout=timeout,
        open_telemetry=False,
        default_headers=_less_foreign(headers),
        http_client=http,
    )


def _tls(provider: Provider) -> ssl.SSLContext:
    if provider.ca_file is not None:
        return ssl.create_default_context(cafile=provider.ca_file)
    return httpx2.create_ssl_context(trust_env=False)


def _headers(api_key: str, declared: Declaration) -> dict[str, str]:
    key = {"api-key": api_key} if declared.auth is Auth.API_KEY else {"Authorization": f"Bearer {api_key}"}
    if declared.auth is Auth.AWS and keys.access(api_key) is not None:
        key = {}
    ours = {**key, "Accept-Encoding": "identity", "Accept": "text/event-stream"}
    if declared.wire is not Wire.ANTHROPIC:  # there the SDK adds them
        stream = aws.EVENTS if declared.wire is Wire.CONVERSE else "text/event-stream"
        ours |= {"Accept": f"{stream}, application/json", "Content-Type": "application/json"}
    return {**ours, **dict(declared.headers)}


def _less_foreign(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours, and none of those that the SDK would take from ANTHROPIC_CUSTOM_HEADERS."""
    mine = {name.lower() for name in ours}
    foreign = (line.partition(":")[0].strip() for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n"))
    dropped = {name: Omit() for name in foreign if name and name.lower() not in mine}
    return cast("dict[str, str]", {**dropped, **ours})

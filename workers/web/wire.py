"""One GET over a connection whose address was judged, and is the one that was judged: a name is looked up once, and
nothing looks it up again between that and the connection."""

from __future__ import annotations

import http.client
import socket
import ssl
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from workers.tools.context import ToolRefused
from workers.web import addresses
from workers.web.target import Reach, Target, refuse_outside

MOST_BYTES = 5 * 1024 * 1024
"""Of a body, as it comes and again as it is unpacked."""
_STALL_S = 10.0
_HEADERS = {
    "User-Agent": "Nightshift (a fetch on behalf of a person)",
    "Accept": "text/html, application/xhtml+xml, text/*, application/json, application/xml;q=0.9",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",
}

Resolve = Callable[[str, int], Sequence[str]]
Left = Callable[[], float]
"""Seconds until this must be over."""
Tls = Callable[[], ssl.SSLContext]
"""Which certificates are believed. Read where a page asks for it: it takes a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Page:
    """A response: `body` unpacked, `cut` where it was longer than is read; `location` of a redirect."""

    status: int
    kind: str
    charset: str
    body: bytes
    cut: bool
    location: str | None


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system knows them. Raises `ToolRefused`."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolRefused(f"there is no host {host[:100]}, or the name service does not answer") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def get(target: Target, reach: Reach, tls: Tls, left: Left, resolve: Resolve = look_up) -> Page:
    """Raises `ToolRefused` for a host that may not be reached, and for one that does not answer as a web server."""
    try:
        connected = connect(target, reach, left, resolve)
        with connected:
            secure = target.scheme == "https"
            sock = tls().wrap_socket(connected, server_hostname=target.host) if secure else connected
            with sock:
                return _ask(target, sock, left)
    except ssl.SSLCertVerificationError as error:
        raise ToolRefused(f"the certificate of {target.host} is not valid for it") from error
    except ssl.SSLError as error:
        raise ToolRefused(f"{target.host} does not speak TLS as it should") from error
    except TimeoutError as error:
        raise ToolRefused(f"{target.host} did not answer in time") from error
    except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
        raise ToolRefused(f"{target.host} did not answer as a web server does ({type(error).__name__})") from error


def connect(target: Target, reach: Reach, left: Left, resolve: Resolve) -> socket.socket:
    """To an address of the host that was judged: the one that is connected to, however often the name changes. Raises
    `ToolRefused`, and OSError where it does not answer."""
    if not reach.allows(target):
        raise refuse_outside(reach.only, target)
    found = resolve(target.host, target.port)
    opened = target.origin in reach.opened
    for address in () if opened else found:
        why = addresses.why_not(address)
        if why is not None:  # one of them is enough: a name that stands for both is a way in
            raise ToolRefused(f"{target.host} is at {why}, which is not fetched from")
    last: OSError = OSError("no address")
    for address in found[:4]:
        try:
            sock = socket.create_connection((address, target.port), timeout=max(0.1, min(_STALL_S, left())))
        except OSError as error:
            last = error
            continue
        if opened or addresses.why_not(str(sock.getpeername()[0])) is None:
            return sock
        sock.close()
    raise last


def _ask(target: Target, sock: socket.socket, left: Left) -> Page:
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = sock
    sock.settimeout(max(0.1, min(_STALL_S, left())))
    port = "" if target.port in (80, 443) else f":{target.port}"
    host = f"[{target.host}]" if ":" in target.host else target.host
    connection.request("GET", target.path, headers={**_HEADERS, "Host": host + port})
    response = connection.getresponse()
    with response:
        kind = response.headers.get_content_type()
        charset = response.headers.get_content_charset("")
        location = response.getheader("Location") if response.status in (301, 302, 303, 307, 308) else None
        body, cut = (b"", False) if location is not None else _body(response, sock, left)
        return Page(response.status, kind, charset, body, cut, location)


def _body(response: http.client.HTTPResponse, sock: socket.socket, left: Left) -> tuple[bytes, bool]:
    """What comes, unpacked, until either is longer than is read: a bomb is cut where it starts to be one."""
    unpack = _unpacker(response.getheader("Content-Encoding", "").strip().casefold())
    body, came = bytearray(), 0
    while True:
        if left() <= 0:
            raise TimeoutError
        with suppress(OSError):  # the response closes the socket where it has all
            sock.settimeout(max(0.1, min(_STALL_S, left())))
        piece = response.read1(65_536)
        if not piece:
            return bytes(body), False
        came += len(piece)
        body += unpack(piece, MOST_BYTES + 1 - len(body))
        if len(body) > MOST_BYTES or came > MOST_BYTES:
            return bytes(body[:MOST_BYTES]), True


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    if encoding in ("", "identity"):
        return lambda piece, most: piece[:most]
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ToolRefused("the answer is packed in a way that was not asked for")
    inflater = zlib.decompressobj(47)  # gzip or zlib, by what it begins with
    return inflater.decompress


def refusal_of(target: Target, status: int) -> ToolRefused:
    """What is said of an answer that is none; the server's own words are not repeated."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "an unknown status"
    return ToolRefused(f"{target.host} answered {status} ({phrase})")

"""In a child: a page is fetched with the network and nothing else open, then read with nothing open at all."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Any

from workers.tools import confine
from workers.tools.context import ToolRefused
from workers.web import readable, target, wire
from workers.web.target import Reach, Target
from workers.web.wire import Left, Page, Resolve, Tls

MOST_HOPS = 5
_NAMES = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    "/run/systemd/resolve", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache",
    "/etc/ssl", "/etc/pki", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
)  # fmt: skip
"""What the system reads to look a name up, and to know a certificate."""


def work(request: dict[str, Any], python: list[str], seconds: float) -> dict[str, object]:
    """`{"url", "kind", "title", "text", "bytes", "cut", "more"}`, or `{"refused"}`: a part of the page's text."""
    until = time.monotonic() + seconds
    reach = Reach(frozenset(request["opened"]), frozenset(request["only"]))
    try:
        confine.seal(readable=[*python, *_NAMES], network=True)
        at, page = fetch(target.parse(str(request["url"])), reach, trust, lambda: until - time.monotonic())
        confine.seal(readable=python)
        title, text = readable.text(page)
    except ToolRefused as refused:
        return {"refused": refused.message}
    first, most = int(request["first"]), int(request["chars"])
    shown = text[first : first + most]
    return {
        "url": at.url, "kind": page.kind, "title": title, "text": shown, "bytes": len(page.body), "cut": page.cut,
        "more": max(0, len(text) - first - len(shown)),
    }  # fmt: skip


def fetch(at: Target, reach: Reach, tls: Tls, left: Left, resolve: Resolve = wire.look_up) -> tuple[Target, Page]:
    """The page and where it was found in the end. Each hop is judged as the first one was. Raises `ToolRefused`."""
    for _ in range(MOST_HOPS + 1):
        page = wire.get(at, reach, tls, left, resolve)
        if page.location is None:
            if page.status != 200:
                raise wire.refusal_of(at, page.status)
            return at, page
        at = target.follow(at, page.location)
    raise ToolRefused(f"more than {MOST_HOPS} redirects; the last led to {at.host}")


def trust() -> ssl.SSLContext:
    """The certificates of the system, or where it has none those that come with the HTTP client."""
    found = ssl.get_default_verify_paths()
    if any(path and Path(path).exists() for path in (found.cafile, found.capath)):
        return ssl.create_default_context()
    import certifi  # noqa: PLC0415 - read only where the system has none

    return ssl.create_default_context(cafile=certifi.where())

"""A URL as the model or a redirect gives it becomes a target, or one line that says why it is not fetched. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from workers.tools.context import ToolRefused

_PORTS = {"http": 80, "https": 443}
_MOST_CHARS = 4_000
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,252})", re.ASCII)
_NUMERIC6 = re.compile(r"[0-9a-f:.]{2,45}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Target:
    """`host` in small letters, as it is looked up; `path` with its query, as it is asked for."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """As a setting names it."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{port}{self.path}"


@dataclass(frozen=True, slots=True)
class Reach:
    """`opened` are `host:port` that may be private; `only`, where there are any, are the names that may be fetched
    from at all, `*.name` for all below it."""

    opened: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()

    def allows(self, target: Target) -> bool:
        if not self.only or target.origin in self.opened:
            return True
        below = target.host.split(".")
        return target.host in self.only or any(f"*.{'.'.join(below[at:])}" in self.only for at in range(1, len(below)))


def names(setting: str) -> frozenset[str]:
    """The words of a setting, with commas between."""
    return frozenset(word.strip().casefold() for word in setting.split(",") if word.strip())


def parse(url: str) -> Target:
    """Raises `ToolRefused` for what is no plain address of a web page."""
    url = url.strip()
    if len(url) > _MOST_CHARS:
        raise ToolRefused(f"the URL is {len(url):,} characters long; at most {_MOST_CHARS:,} are taken")
    if any(ord(character) < 0x21 or ord(character) == 0x7F for character in url) or "\\" in url:
        raise ToolRefused("the URL holds a blank, a backslash or a control character; write it percent-encoded")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise ToolRefused("this is no URL that can be read") from error
    scheme = parts.scheme.casefold()
    if scheme not in _PORTS:
        raise ToolRefused(f"only http and https are fetched, not {scheme[:20] or 'a URL without a scheme'}")
    if parts.username is not None or parts.password is not None:
        raise ToolRefused("a URL with a name or password in it is not fetched; leave them out")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + (f"?{_query(parts.query)}" if parts.query else "")
    return Target(scheme, _host(host), port or _PORTS[scheme], path)


def follow(at: Target, location: str) -> Target:
    """Where a redirect leads. Raises as `parse`; from https never to http."""
    target = parse(urljoin(at.url, location.strip()))
    if at.scheme == "https" and target.scheme == "http":
        raise ToolRefused(f"{at.host} redirects from https to http, which is not followed")
    return target


def _query(query: str) -> str:
    return quote(query, safe="/?%:@!$&'()*+,;=~-._")


def _host(host: str) -> str:
    if ":" in host:
        if not _NUMERIC6.fullmatch(host):
            raise ToolRefused("this is no address of a host that can be read")
        return host
    try:
        plain = host.encode("idna").decode("ascii").casefold()
    except UnicodeError as error:
        raise ToolRefused("this is no name of a host that can be read") from error
    if not _HOST.fullmatch(plain):
        raise ToolRefused("the URL names no host")
    return plain


def refuse_outside(reach: Collection[str], target: Target) -> ToolRefused:
    """What is said of a host that the settings do not name."""
    return ToolRefused(f"{target.host} is not among the hosts that may be fetched from here ({len(reach)} are named)")


def reach(opened: str, only: str) -> Reach:
    """As the settings `web_open_hosts` and `web_hosts` say it."""
    return Reach(names(opened), names(only))

"""Owns what is AWS's own about Bedrock: what a key can be there, which region it is for, which models take marks. Pure.

Invariant: no text of an access key is shown; its secret and its session token are secrets by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from shared.request.cache_plan import ANTHROPIC, UNMARKED, Route
from shared.request.marked import Ttl

BEGINS = ("AKIA", "ASIA")
"""Access keys, for long and for a while; those need their session token."""
_ACCESS = re.compile(
    r"(AKIA[A-Z0-9]{8,124}|ASIA[A-Z0-9]{8,124}(?=.*:.*:)):([A-Za-z0-9/+=]{16,256})(?::([A-Za-z0-9/+=._-]{16,8192}))?",
    re.ASCII,
)
_REGION = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z]{2,4}(?:-[a-z]+)+-\d)\.")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
ID, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_CLAUDE = re.compile(r"claude-[a-z]+-(\d)(?:-(\d{1,2}))?(?!\d)")
_ELDER = ("claude-3-7-sonnet", "claude-3-5-haiku")
SHORT = replace(ANTHROPIC, max_ttl=Ttl.MINUTES)


@dataclass(frozen=True, slots=True)
class Access:
    """An access key, which signs (Signature Version 4). `token` where it is a temporary one."""

    id: str
    secret: str = field(repr=False)
    token: str | None = field(repr=False)


def access(key: str) -> Access | None:
    """`AKIA…:secret`, with `:session token` behind a temporary one (`ASIA…`); None where a key is a bearer token."""
    found = _ACCESS.fullmatch(key)
    return Access(found.group(1), found.group(2), found.group(3)) if found is not None else None


def from_environ(environ: Mapping[str, str]) -> str:
    """The access key of AWS's own variables as one text, empty where there is none."""
    parts = (environ.get(ID, ""), environ.get(SECRET, ""), environ.get(TOKEN, ""))
    return ":".join(filter(None, parts)) if parts[0] and parts[1] else ""


def secrets_in(key: str) -> tuple[str, ...]:
    """What of a key may be shown nowhere: itself, and of an access key each part that is secret by itself."""
    found = access(key)
    return (key,) if found is None else tuple(filter(None, (key, found.secret, found.token)))


def region(base_url: str, environ: Mapping[str, str]) -> str | None:
    """The region that a signature is for: the address says so, else AWS's own variables."""
    found = _REGION.search(urlsplit(base_url).hostname or "")
    if found is not None:
        return found.group(1)
    return next((told for name in _REGION_VARIABLES if (told := environ.get(name, "").strip())), None)


def route(model: str) -> Route:
    """What a cache point does for a model: Claude takes them, for an hour from 4.5 on, for five minutes since 3.5 Haiku
    and 3.7; elsewhere one is refused, or does nothing that has a price. An inference profile of one's own does not
    say whose it is. Source: AWS, "Prompt caching for faster model inference"."""
    found = _CLAUDE.search(model)
    if found is None:
        return SHORT if any(one in model for one in _ELDER) else UNMARKED
    version = int(found.group(1)), int(found.group(2) or 0)
    return ANTHROPIC if version >= (4, 5) else SHORT if version >= (4, 0) else UNMARKED

"""The name of a prefix: a digest of what is sent, so that equal prefixes are one row and one cache entry."""

from __future__ import annotations

from hashlib import sha256


def prefix_digest(system_text: str, tools_text: str) -> str:
    """The digest of tools and system prompt as sent. The length stands first, so that no border can be moved unseen."""
    tools = tools_text.encode()
    return sha256(b"%d:%s%s" % (len(tools), tools, system_text.encode())).hexdigest()

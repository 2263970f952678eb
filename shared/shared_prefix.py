"""The name of what several sessions share of their prompt: equal names may wait for one another's cache entry."""

from __future__ import annotations

from hashlib import sha256


def key(*parts: str) -> str:
    """A digest of the parts in order. Each one's length stands before it, so that no border can be moved unseen."""
    found = sha256()
    for part in parts:
        text = part.encode()
        found.update(b"%d:%s" % (len(text), text))
    return found.hexdigest()


def of_job(provider: str, model: str, profile: str, *, attached: bool) -> str:
    """What the runs of all jobs of a profile share: tools and the stable tier. Told by what makes those two, since who
    ticks does not build prompts."""
    return key("job", provider, model, profile, "attached" if attached else "")

"""Owns the rules of cache marks: how many, in which order; and where the automatic mark falls."""

from collections.abc import Iterator, Sequence
from typing import Final

from deploy.rehearsal import seen
from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json
from deploy.rehearsal.seen import Message

LIMIT: Final = 4
HOUR_AFTER_FIVE: Final = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
ORDER: Final = "Note that blocks are processed in the following order: tools, system, messages."


def check(request: Json, messages: Sequence[Message]) -> str | None:
    """The TTL of the automatic mark, if asked for; Refused where marks are too many or out of order."""
    ttls = list(_marks(request, messages))
    automatic = request.get("cache_control")
    count = len(ttls) + (1 if automatic is not None else 0)
    if count > LIMIT:
        raise Refused(f"A maximum of {LIMIT} blocks with cache_control may be provided. Found {count}.")
    five_came = False
    for path, ttl in ttls:
        if ttl == "1h" and five_came:
            raise Refused(f"{path}.cache_control.ttl: {HOUR_AFTER_FIVE} {ORDER}")
        five_came = five_came or ttl == "5m"
    return None if automatic is None else _automatic(automatic, messages, five_came)


def _marks(request: Json, messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    for index, tool in enumerate(request.get("tools") or ()):
        ttl = seen.mark_of(tool)
        if ttl is not None:
            yield f"tools.{index}", ttl
    system = request.get("system") or ()
    if not isinstance(system, str):
        for index, block in enumerate(system):
            ttl = seen.mark_of(block)
            if ttl is not None:
                yield f"system.{index}", ttl
    for index, message in enumerate(messages):
        if message.has_mark:
            for number, block in enumerate(message.blocks):
                if block.mark is not None:
                    yield f"messages.{index}.content.{number}", block.mark


def _automatic(control: Json, messages: Sequence[Message], five_came: bool) -> str:
    """The TTL of the mark that the service sets by itself on the last block that can carry one."""
    ttl: str = control.get("ttl") or "5m"
    standing = next(_eligible_from_end(messages), None)
    if standing is not None and standing != ttl:
        raise Refused("cache_control: the last cacheable block already has cache_control with a different ttl")
    if ttl == "1h" and five_came:
        raise Refused(f"cache_control.ttl: {HOUR_AFTER_FIVE}")
    return ttl


def _eligible_from_end(messages: Sequence[Message]) -> Iterator[str | None]:
    for message in reversed(messages):
        for block in reversed(message.blocks):
            if block.kind not in seen.REASONING:
                yield block.mark

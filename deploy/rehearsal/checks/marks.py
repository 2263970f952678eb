"""Owns the rules of cache marks: how many, on what, in which order; and where the automatic mark falls."""

from collections.abc import Iterator
from typing import Any, Final

from deploy.rehearsal.errors import Refused
from deploy.rehearsal.loose import Json, is_object

LIMIT: Final = 4
HOUR_AFTER_FIVE: Final = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
NOT_MARKABLE: Final = frozenset(("thinking", "redacted_thinking"))
TTLS: Final = ("5m", "1h")


def check(request: Json) -> str | None:
    """The TTL of the automatic mark, if asked for; Refused where marks are too many, out of order or misplaced."""
    ttls: list[tuple[str, str]] = []
    for path, block in _blocks(request):
        control = block.get("cache_control")
        if control is None:
            continue
        ttls.append((path, _ttl(control, path)))
        if block.get("type") == "text" and not block["text"]:
            raise Refused(f"{path}.text: cache_control cannot be set for empty text blocks")
    automatic = request.get("cache_control")
    count = len(ttls) + (1 if automatic is not None else 0)
    if count > LIMIT:
        raise Refused(f"A maximum of {LIMIT} blocks with cache_control may be provided. Found {count}.")
    five_came = False
    for path, ttl in ttls:
        if ttl == "1h" and five_came:
            raise Refused(
                f"{path}.cache_control.ttl: {HOUR_AFTER_FIVE} "
                "Note that blocks are processed in the following order: tools, system, messages."
            )
        five_came = five_came or ttl == "5m"
    return None if automatic is None else _automatic(request, automatic, five_came)


def _ttl(control: Any, path: str) -> str:
    if not is_object(control):
        raise Refused(f"{path}.cache_control: Input should be a valid dictionary")
    known: Json = control
    for key in known:
        if key not in ("type", "ttl"):
            raise Refused(f"{path}.cache_control.ephemeral.{key}: Extra inputs are not permitted")
    if known.get("type") != "ephemeral":
        raise Refused(f"{path}.cache_control.type: Input should be 'ephemeral'")
    ttl = known.get("ttl") or "5m"
    if ttl not in TTLS:
        raise Refused(f"{path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")
    return ttl


def _blocks(request: Json) -> Iterator[tuple[str, Json]]:
    for index, tool in enumerate(request.get("tools") or ()):
        yield f"tools.{index}", tool
    system = request.get("system")
    if system and not isinstance(system, str):
        for index, block in enumerate(system):
            yield f"system.{index}", block
    for index, message in enumerate(request["messages"]):
        content = message["content"]
        if isinstance(content, str):
            continue
        for number, block in enumerate(content):
            if "cache_control" in block:
                yield f"messages.{index}.content.{number}", block


def _automatic(request: Json, control: Any, five_came: bool) -> str:
    """The TTL of the mark that the service sets by itself on the last block that can carry one."""
    ttl = _ttl(control, "cache_control")
    standing = next((block.get("cache_control") for block in _eligible_from_end(request["messages"])), None)
    if standing is not None and (standing.get("ttl") or "5m") != ttl:
        raise Refused("cache_control: the last cacheable block already has cache_control with a different ttl")
    if ttl == "1h" and five_came:
        raise Refused(f"cache_control.ttl: {HOUR_AFTER_FIVE}")
    return ttl


def _eligible_from_end(messages: list[Json]) -> Iterator[Json]:
    for message in reversed(messages):
        content = message["content"]
        if isinstance(content, str):
            yield {}
            continue
        for block in reversed(content):
            if block["type"] not in NOT_MARKABLE and block.get("text") != "":
                yield block

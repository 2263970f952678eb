"""Owns what the provider is about to say: a reply or a fault, as values, and their reading from a script's JSON."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Final

from deploy.rehearsal.loose import Json, is_array, is_object


class FaultKind(StrEnum):
    STATUS = "status"  # an error answer instead of a reply
    STALL = "stall"  # silence after some chunks, then the rest
    CUT = "cut"  # the socket closes in the middle
    CLEAN_EOF = "clean_eof"  # the body ends properly without message_stop
    ERROR_EVENT = "error_event"  # an `error` event inside a 200
    NO_USAGE = "no_usage"  # a whole reply that tells no usage
    HTML = "html"  # a page of some proxy
    REDIRECT = "redirect"
    NOTHING = "nothing"  # the socket closes without a byte
    OVERFLOW = "overflow"  # `prompt is too long`
    FLOOD = "flood"  # so many bytes more: of text, of a tool's arguments, or of pings
    GARBAGE = "garbage"  # an event whose data is not JSON


class FloodOf(StrEnum):
    TEXT = "text"
    ARGUMENTS = "arguments"
    PINGS = "pings"


class WrongScript(Exception):
    """The script's JSON is not one; the message says where."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    status: int = 500
    retry_after: float | None = None
    message: str | None = None
    error_type: str | None = None
    after_chunks: int = 1
    seconds: float = 3600.0
    location: str = "/elsewhere"
    bytes: int = 1_000_000
    of: FloodOf = FloodOf.TEXT


@dataclass(frozen=True, slots=True)
class ToolWish:
    name: str
    input: Json
    # Exact JSON text of the arguments, where a test needs numbers or broken JSON that a dump would not keep.
    input_text: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    text: str = ""
    chunks: int | None = None
    thinking: str | None = None
    redacted: bool = False
    tools: tuple[ToolWish, ...] = ()
    delay_s: float = 0.0
    gap_s: float = 0.0
    output_tokens: int | None = None
    stop_reason: str | None = None
    fault: Fault | None = None
    # The text before a call is what a model usually says first; some put it after.
    tools_first: bool = False


def reply_from(value: Any, path: str) -> Reply:
    """A reply read from JSON; unknown keys and wrong types are refused with their path."""
    given = _object(value, path)
    _known(given, Reply, path)
    plain = {key: item for key, item in given.items() if key not in ("tools", "fault") and item is not None}
    for key, wanted in _PLAIN.items():
        if key in plain and not wanted(plain[key]):
            raise WrongScript(f"{path}.{key}: wrong type")
    wishes: Any = given.get("tools") or []
    if not is_array(wishes):
        raise WrongScript(f"{path}.tools: should be a list")
    fault = given.get("fault")
    return Reply(
        **plain,
        tools=tuple(_wish(wish, f"{path}.tools.{number}") for number, wish in enumerate(wishes)),
        fault=None if fault is None else _fault(fault, f"{path}.fault"),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_PLAIN: Final[dict[str, Callable[[Any], bool]]] = {
    "text": lambda value: isinstance(value, str),
    "thinking": lambda value: isinstance(value, str),
    "stop_reason": lambda value: isinstance(value, str),
    "chunks": lambda value: isinstance(value, int) and value > 0,
    "output_tokens": lambda value: isinstance(value, int),
    "delay_s": _is_number,
    "gap_s": _is_number,
    "redacted": lambda value: isinstance(value, bool),
    "tools_first": lambda value: isinstance(value, bool),
}


def _object(value: Any, path: str) -> Json:
    if not is_object(value):
        raise WrongScript(f"{path}: should be an object")
    return value


def _known(given: Json, shape: Any, path: str) -> None:
    names = {field.name for field in fields(shape)}
    for key in given:
        if key not in names:
            raise WrongScript(f"{path}.{key}: unknown; known are {', '.join(sorted(names))}")


def _wish(value: Any, path: str) -> ToolWish:
    given = _object(value, path)
    _known(given, ToolWish, path)
    if not isinstance(given.get("name"), str):
        raise WrongScript(f"{path}.name: should be a string")
    return ToolWish(given["name"], _object(given.get("input", {}), f"{path}.input"), given.get("input_text"))


def _fault(value: Any, path: str) -> Fault:
    given = _object(value, path)
    _known(given, Fault, path)
    try:
        kind = FaultKind(given.get("kind"))
    except ValueError:
        raise WrongScript(f"{path}.kind: one of {', '.join(FaultKind)}") from None
    rest = {key: item for key, item in given.items() if key != "kind" and item is not None}
    for key in ("status", "retry_after", "after_chunks", "seconds", "bytes"):
        if key in rest and not _is_number(rest[key]):
            raise WrongScript(f"{path}.{key}: should be a number")
    if "of" in rest:
        if rest["of"] not in set(FloodOf):
            raise WrongScript(f"{path}.of: one of {', '.join(FloodOf)}")
        rest["of"] = FloodOf(rest["of"])
    return Fault(kind, **rest)

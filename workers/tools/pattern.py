"""The model's patterns become linear-time matchers; what RE2 refuses is explained, with a way to write it otherwise."""

from __future__ import annotations

import re
from typing import Any, Protocol, cast

import re2

from shared.text import clean_text
from workers.tools.context import ToolRefused

_MOST_CHARS = 2_000
_WILD = re.compile(r"(\*\*/|\*\*|\*|\?|\{[^{}]{1,200}\})")
# The package has no types; what is used of it is named here.
_re2 = cast("Any", re2)


class Match(Protocol):
    def start(self) -> int: ...


class Matcher(Protocol):
    """Searches UTF-8 bytes from a position; time grows with their length alone."""

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


def compile_pattern(text: str) -> Matcher:
    """A matcher in which `^` and `$` are a line's ends and no match crosses a line. Raises `ToolRefused`."""
    if not text:
        raise ToolRefused("the pattern is empty")
    if len(text) > _MOST_CHARS:
        raise ToolRefused(f"the pattern is {len(text):,} characters long; at most {_MOST_CHARS:,} are taken")
    return _compile("(?m)" + clean_text(text), never_nl=True)


def compile_glob(text: str) -> Matcher | None:
    """A matcher for paths: `*` within a name, `**` across folders, `{a,b}`; without a `/` the name alone counts."""
    if not text:
        return None
    if len(text) > _MOST_CHARS:
        raise ToolRefused(f"the glob is {len(text):,} characters long; at most {_MOST_CHARS:,} are taken")
    pattern = "".join(_piece(piece) for piece in _WILD.split(clean_text(text)) if piece)
    anywhere = "" if "/" in text else "(?:.*/)?"
    return _compile(rf"(?s)\A{anywhere}{pattern}\z", never_nl=False)


def _compile(pattern: str, *, never_nl: bool) -> Matcher:
    options = _re2.Options()
    options.never_nl = never_nl
    options.log_errors = False
    try:
        return cast("Matcher", _re2.compile(pattern, options))
    except _re2.error as error:
        raw = cast("object", error.args[0] if error.args else b"")
        reason = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
        raise ToolRefused(f"the pattern is refused: {reason}. {_advice(reason)}") from error


def _advice(reason: str) -> str:
    if re.search(r"\(\?(<?[=!]|>)", reason):
        return "There is no look-around (RE2 syntax): match the text around it too, or search twice"
    if re.search(r"invalid escape sequence: \\[1-9]", reason):
        return "There are no back-references (RE2 syntax): write the repeated text out"
    if "invalid escape sequence" in reason:
        return r"RE2 syntax: \z for the end, \d \w \s \b as usual; put a \ before . ( ) [ ] { } + * ? | to mean itself"
    if "repetition" in reason:
        return r"RE2 repeats at most 1000 times and has no possessive ++; put a \ before + * ? to mean itself"
    return r"RE2 syntax; put a \ before ( ) [ ] { } + * ? | to mean itself"


def _piece(piece: str) -> str:
    match piece:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if piece.startswith("{") and piece.endswith("}"):
            return "(?:" + "|".join(_literal(one).replace(r"\*", "[^/]*") for one in piece[1:-1].split(",")) + ")"
        case _:
            return _literal(piece)


def _literal(text: str) -> str:
    return str(_re2.escape(text))

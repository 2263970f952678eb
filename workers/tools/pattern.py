"""The model's patterns become linear-time matchers; what RE2 refuses is explained, with a way to write it otherwise."""

from __future__ import annotations

import re

import re2

from shared.text import clean_text
from workers.tools.context import ToolRefused

_MOST_CHARS = 2_000
_ALTERNATIVES = re.compile(r"\{([^{}]{1,200})\}")

Matcher = re2._Regexp  # pyright: ignore[reportPrivateUsage] - the package names its only matcher type so


def compile_pattern(text: str) -> Matcher:
    """A matcher over UTF-8 bytes in which `^` and `$` are a line's ends and no match crosses a line. Raises `ToolRefused`."""
    if not text:
        raise ToolRefused("the pattern is empty")
    if len(text) > _MOST_CHARS:
        raise ToolRefused(f"the pattern is {len(text):,} characters long; at most {_MOST_CHARS:,} are taken")
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    try:
        return re2.compile("(?m)" + clean_text(text), options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ToolRefused(f"the pattern is refused: {words}. {_advice(words)}".strip()) from error


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


def compile_glob(text: str) -> Matcher | None:
    """A matcher for whole paths: `*` within a name, `**` across folders, `{a,b}`; without a `/` it is about the name alone."""
    if not text:
        return None
    if len(text) > _MOST_CHARS:
        raise ToolRefused("the glob is too long")
    pattern = "".join(_piece(piece) for piece in re.split(r"(\*\*/|\*\*|\*|\?|\{[^{}]{1,200}\})", clean_text(text)) if piece)
    if "/" not in text:
        pattern = "(?:.*/)?" + pattern
    options = re2.Options()
    options.log_errors = False
    return re2.compile(f"(?s)^{pattern}$", options)


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
        case _:
            chosen = _ALTERNATIVES.fullmatch(piece)
            if chosen is None:
                return re2.escape(piece)
            return "(?:" + "|".join(_literal_star(one) for one in chosen.group(1).split(",")) + ")"


def _literal_star(text: str) -> str:
    return re2.escape(text).replace(r"\*", "[^/]*")

"""`$name` and `${name…}`: what a parameter stands for, as far as this line tells."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from tree_sitter import Node

from shared.gate.shell import words
from shared.gate.shell.marks import HOME, STAR, UNKNOWN, certain, plain
from shared.gate.shell.scope import Scope

if TYPE_CHECKING:
    from shared.gate.shell.words import Substitute

_PARTS = re.compile(r"\$\{(?P<sign>[!#]?)(?P<name>\w+|[@*?$!#-])(?:\[(?P<index>[^\]]*)\])?(?P<rest>.*)\}$", re.DOTALL)
_SLICE = re.compile(r":\s*(-?\d+)(?::(-?\d+))?$")
_NUMBERS = frozenset("?$!#-")


def value(node: Node, scope: Scope, substitute: Substitute) -> str:
    """Marked; what is not known, or was never set by this line, is UNKNOWN."""
    text = (node.text or b"").decode()
    if node.type == "simple_expansion":
        return _named(text[1:], scope)
    words.within(node, substitute)
    parts = _PARTS.match(text)
    if parts is None:
        return UNKNOWN
    name, rest = parts["name"], parts["rest"]
    if parts["sign"] == "#":
        return UNKNOWN
    held = _element(parts["name"], parts["index"], scope)
    if parts["sign"] == "!":
        held = None if held is None or not certain(held) else scope.value(held)
        return UNKNOWN if held is None or rest else held
    if not rest:
        return UNKNOWN if held is None else held
    return _changed(name, held, rest, node, scope, substitute)


def listed(node: Node, scope: Scope) -> list[str] | None:
    """The values of `"$@"` and `"${name[@]}"`, which stay apart though they are quoted; None of any other."""
    text = (node.text or b"").decode()
    if text in ("$@", "${@}"):
        return [UNKNOWN] if scope.loose else scope.arguments
    found = re.fullmatch(r"\$\{(\w+)\[@\]\}", text)
    return scope.arrays.get(found[1]) if found is not None else None


def _named(name: str, scope: Scope) -> str:
    if name in _NUMBERS:
        return UNKNOWN
    held = scope.value(name)
    return UNKNOWN if held is None else held


def _element(name: str, index: str | None, scope: Scope) -> str | None:
    if name in _NUMBERS:
        return UNKNOWN
    if index is None:
        return scope.value(name)
    held = scope.arrays.get(name)
    if held is None:
        return scope.value(name) if index in ("@", "*", "0") else None
    if index in ("@", "*"):
        return " ".join(held)
    if any(UNKNOWN in one or STAR in one for one in held):
        return UNKNOWN  # it may be none, or several
    if re.fullmatch(r"-?\d+", index):
        at = int(index)
        return held[at] if -len(held) <= at < len(held) else ""
    return UNKNOWN


def _changed(name: str, held: str | None, rest: str, node: Node, scope: Scope, substitute: Substitute) -> str:
    if rest[:2] in (":-", ":=", ":+", ":?") or rest[:1] in "-=+?":
        return _default(name, held, rest, node, scope, substitute)
    if held is None:
        return UNKNOWN
    cut = _SLICE.match(rest)
    if cut is not None:
        return _slice(held, int(cut[1]), cut[2])
    if not certain(held) or "$" in rest or "`" in rest:
        return UNKNOWN
    return _edited(held, rest)


def _default(name: str, held: str | None, rest: str, node: Node, scope: Scope, substitute: Substitute) -> str:
    colon = rest.startswith(":")
    kind = rest[1] if colon else rest[0]
    unset = held is None or (colon and not held)
    other = "".join(
        words.single(child, scope, substitute)
        for child in node.children
        if child.is_named and child.type not in ("variable_name", "special_variable_name", "subscript")
    )
    match kind:
        case "+":
            return UNKNOWN if held is None or UNKNOWN in held else ("" if unset else plain(other))
        case "?":
            return UNKNOWN if held is None else held
        case _:
            if kind == "=" and unset:
                scope.set(name, plain(other))
            return plain(other) if unset else (held or "")


def _slice(held: str, start: int, length: str | None) -> str:
    if held.startswith(HOME) and start == 0 and length == "1":
        return "/"
    if held == f"/{UNKNOWN}" and start == 0 and length == "1":
        return "/"  # every entry of a PATH begins so
    if not certain(held) or HOME in held:
        return UNKNOWN
    start = max(len(held) + start, 0) if start < 0 else start
    if length is None:
        return held[start:]
    end = start + int(length) if int(length) >= 0 else len(held) + int(length)
    return held[start:end]


def _edited(held: str, rest: str) -> str:
    """`#`, `%`, `/`, `^`, `,`, `@` on a known value."""
    if rest in ("^^", "@U"):
        return held.upper()
    if rest in (",,", "@L"):
        return held.lower()
    if rest == "^":
        return held[:1].upper() + held[1:]
    if rest == ",":
        return held[:1].lower() + held[1:]
    if rest[0] in "#%":
        longest = rest[1:2] == rest[0]
        return _stripped(held, rest[2:] if longest else rest[1:], front=rest[0] == "#", longest=longest)
    if rest[0] == "/":
        pattern, _, by = rest.lstrip("/").partition("/")
        if re.search(r"[\\\[\]'\"]", pattern + by):
            return UNKNOWN
        found = re.compile(fnmatch.translate(pattern).removesuffix(r"\Z").removesuffix(r"\z"))
        return found.sub(lambda _: by, held, count=0 if rest.startswith("//") else 1)
    return UNKNOWN


def _stripped(held: str, pattern: str, *, front: bool, longest: bool) -> str:
    if re.search(r"[\\'\"]", pattern):
        return UNKNOWN
    cuts = range(len(held) + 1) if front != longest else range(len(held), -1, -1)
    for at in cuts:
        piece = held[:at] if front else held[at:]
        if fnmatch.fnmatchcase(piece, pattern):
            return held[at:] if front else held[:at]
    return held

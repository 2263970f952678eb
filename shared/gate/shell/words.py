"""A word of a command line as a shell would see it: quotes removed, what is known put in, the rest marked.

Order as in bash: braces, then variables and substitutions, then cutting into words, then patterns.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from itertools import pairwise

from tree_sitter import Node

from shared.gate.shell import parameters
from shared.gate.shell.marks import CLOSE, COMMA, HOME, ONE, OPEN, QUOTE, SPLIT, SQUARE, STAR, UNKNOWN, certain, live
from shared.gate.shell.scope import Scope

Substitute = Callable[[Node], str]
"""Reads the commands of a substitution and says what they print, as far as that is known."""
_MOST_WORDS = 256
_MOST_CHARS = 40_000
_RANGE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])$")
_BRACKET = re.compile(rf"{SQUARE}[^\]\s]+\]")
_USER = re.compile(r"~([a-z_][a-z0-9_-]*)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ANSI_OCTAL = re.compile(r"\\([0-7]{1,3})")
_ANSI_HEX = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8}))")


def fields(node: Node, scope: Scope, substitute: Substitute) -> list[str]:
    """The words that this one becomes, marked."""
    found: list[str] = []
    for braced in braces(evaluate(node, scope, substitute)):
        found += [_pattern(tilde(part)).replace(QUOTE, "") for part in braced.split(SPLIT) if part]
        if len(found) > _MOST_WORDS:
            return [UNKNOWN]
    return found


def single(node: Node, scope: Scope, substitute: Substitute) -> str:
    """As the value of an assignment or the target of a redirection: one word, not cut."""
    return _pattern(tilde(evaluate(node, scope, substitute))).replace(QUOTE, "").replace(SPLIT, " ")


def evaluate(node: Node, scope: Scope, substitute: Substitute, *, quoted: bool = False) -> str:
    match node.type:
        case (
            "word"
            | "number"
            | "variable_name"
            | "special_variable_name"
            | "regex"
            | "extglob_pattern"
            | "test_operator"
        ):
            return _bare(_text(node)) if not quoted else _text(node)
        case "command_name":
            return "".join(evaluate(child, scope, substitute, quoted=quoted) for child in node.children)
        case "concatenation" | "brace_expression":
            return _joined(node, scope, substitute, quoted)
        case "string":
            return QUOTE + _string(node, scope, substitute)
        case "translated_string":
            return "".join(evaluate(child, scope, substitute) for child in node.children if child.is_named)
        case "raw_string":
            return QUOTE + _text(node)[1:-1]
        case "ansi_c_string":
            return QUOTE + ansi(_text(node)[2:-1])
        case "simple_expansion" | "expansion":
            listed = parameters.listed(node, scope) if quoted else None
            if listed is not None:
                return SPLIT.join(QUOTE + one for one in listed)
            return _expanded(parameters.value(node, scope, substitute), scope, quoted)
        case "command_substitution":
            return _expanded(substitute(node), scope, quoted)
        case "process_substitution":
            return substitute(node)
        case "arithmetic_expansion":
            within(node, substitute)
            return UNKNOWN
        case _:
            if not node.is_named:
                return _bare(_text(node))
            within(node, substitute)
            return UNKNOWN


def within(node: Node, substitute: Substitute) -> None:
    """Read it, if it is a substitution, or every one below."""
    if node.type in ("command_substitution", "process_substitution"):
        substitute(node)
        return
    for child in node.children:
        within(child, substitute)


def _joined(node: Node, scope: Scope, substitute: Substitute, quoted: bool) -> str:
    parts = [evaluate(child, scope, substitute, quoted=quoted) for child in node.children]
    for child, after in pairwise(node.children):
        if child.type == "simple_expansion" and (after.text or b"").startswith(b"{"):
            return UNKNOWN  # braces come first in bash: `$v{a,b}` is `$va $vb`, other variables
    return _bounded(parts)


def _bounded(parts: list[str]) -> str:
    """Together; what would grow beyond measure is not known."""
    return "".join(parts) if sum(map(len, parts)) <= _MOST_CHARS else UNKNOWN


def _string(node: Node, scope: Scope, substitute: Substitute) -> str:
    """Between the quotes. Blanks between two parts belong to no part of the tree, and to the text."""
    source, made = node.text or b"", list[str]()
    at = node.start_byte + 1
    for child in node.children[1:-1]:
        made.append(source[at - node.start_byte : child.start_byte - node.start_byte].decode())
        if child.type == "string_content" or not child.is_named:
            made.append(re.sub(r'\\([$`"\\\n])', lambda m: "" if m[1] == "\n" else m[1], _text(child)))
        else:
            made.append(evaluate(child, scope, substitute, quoted=True))
        at = child.end_byte
    made.append(source[at - node.start_byte : -1].decode())
    return _bounded(made)


def _expanded(value: str, scope: Scope, quoted: bool) -> str:
    """Unquoted, it is cut where the shell's own variable says."""
    if quoted:
        return value
    ends = scope.value("IFS")
    if ends is None or not certain(ends):
        ends = " \t\n"
    return re.sub(f"[{re.escape(ends)}]+", SPLIT, live(value)) if ends else live(value)


def _bare(text: str) -> str:
    """Unquoted text: what a backslash protects is a plain character, patterns and braces are marked."""
    made, at = list[str](), 0
    marks = {"*": STAR, "?": ONE, "{": OPEN, ",": COMMA, "}": CLOSE, "[": SQUARE}
    while at < len(text):
        if text[at] == "\\":
            made.append(QUOTE + text[at + 1 : at + 2] if text[at + 1 : at + 2] != "\n" else "")
            at += 2
        else:
            made.append(marks.get(text[at], text[at]))
            at += 1
    return "".join(made)


def _pattern(word: str) -> str:
    """`[…]` stands for one character. Where it was quoted its parts are not together: it is then left as it is."""
    return _BRACKET.sub(ONE, word).replace(SQUARE, "[")


def tilde(word: str) -> str:
    if word == "~" or word.startswith("~/"):
        return HOME + word[1:]
    named = _USER.match(word)
    if named is not None and word[named.end() : named.end() + 1] in ("", "/"):
        home = "/root" if named[1] == "root" else f"/home/{named[1]}"
        return home + word[named.end() :]
    return word


def braces(word: str) -> list[str]:
    """`{a,b}` and `{1..3}` as bash writes them out; a brace that is none of these stays a character."""
    start = _innermost(word)
    if start is None:
        return [word.replace(OPEN, "{").replace(COMMA, ",").replace(CLOSE, "}")]
    end = word.index(CLOSE, start)
    before, inside, after = word[:start], word[start + 1 : end], word[end + 1 :]
    found = _listed(inside)
    if found is None:
        return braces(f"{before}{{{inside.replace(COMMA, ',')}}}{after}")
    made = itertools.chain.from_iterable(braces(before + one + after) for one in found)
    return list(itertools.islice(made, _MOST_WORDS + 1))


def _innermost(word: str) -> int | None:
    end = word.find(CLOSE)
    while end >= 0:
        start = word.rfind(OPEN, 0, end)
        if start >= 0:
            return start
        word = word[:end] + "}" + word[end + 1 :]
        end = word.find(CLOSE)
    return None


def _listed(inside: str) -> list[str] | None:
    if COMMA in inside:
        return inside.split(COMMA)
    ends = _RANGE.match(inside)
    if ends is None:
        return None
    first, last = ends[1], ends[2]
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        step = 1 if int(first) <= int(last) else -1
        return [str(n) for n in range(int(first), int(last) + step, step)][:_MOST_WORDS]
    if first.isalpha() and last.isalpha():
        step = 1 if first <= last else -1
        return [chr(n) for n in range(ord(first), ord(last) + step, step)]
    return None


def ansi(text: str) -> str:
    """What stands in `$'…'`."""

    def by_hex(found: re.Match[str]) -> str:
        code = int(next(group for group in found.groups() if group), 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE100 else UNKNOWN

    return "\\".join(_unescaped(part, by_hex) for part in text.split("\\\\"))


def _unescaped(text: str, by_hex: Callable[[re.Match[str]], str]) -> str:
    text = _ANSI_HEX.sub(by_hex, text)
    text = _ANSI_OCTAL.sub(lambda found: chr(int(found[1], 8) & 0xFF), text)
    text = re.sub(r"\\c(.)", lambda found: chr(ord(found[1]) & 0x1F), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def _text(node: Node) -> str:
    return (node.text or b"").decode()

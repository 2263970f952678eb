"""What a program would print, where that follows from the line alone: `echo`, `printf`, `cat` and the decoders behind
which a command may hide."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

from shared.gate.shell import words as wording
from shared.gate.shell.marks import UNKNOWN, certain
from shared.gate.shell.scope import Scope

_MOST = 20_000


def printed(argv: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    """The text, which may hold marks; None where it does not follow from the line."""
    made = _PRINTS.get(argv[0].rpartition("/")[2])
    if made is None:
        return None
    text = made(argv[1:], stdin, scope)
    return text if text is not None and len(text) <= _MOST else None


def _echo(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    del stdin, scope
    words, escapes, end = list(words), False, "\n"
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes = escapes or "e" in words[0]
        end = "" if "n" in words[0] else end
        words.pop(0)
    text = " ".join(words)
    return (wording.ansi(text) if escapes else text) + end


def _printf(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    del stdin, scope
    words = list(words)
    if words[:1] == ["--"]:
        words.pop(0)
    if not words or words[0] == "-v":
        return None
    template, rest = words[0], words[1:]
    parts = re.split(r"(%(?:%|[-0-9.]*[a-zA-Z]))", template)
    holes = [hole for hole in parts[1::2] if hole != "%%"]
    if any(hole[1:] not in ("s", "b", "c", "d") for hole in holes):
        return UNKNOWN
    made = list[str]()
    while True:
        for index, part in enumerate(parts):
            if index % 2 == 0:
                made.append(wording.ansi(part))
            elif part == "%%":
                made.append("%")
            else:
                word = rest.pop(0) if rest else ""
                made.append(wording.ansi(word) if part == "%b" else word[:1] if part == "%c" else word)
        if not rest or not holes:
            return "".join(made)


def _cat(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    names = [word for word in words if not word.startswith("-") or word == "-"]
    if not names:
        return stdin
    parts = [stdin if name == "-" else scope.content(name) for name in names]
    return None if any(part is None for part in parts) else "".join(part for part in parts if part is not None)


def _base64(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    decodes = any(re.fullmatch(r"-[a-z]*[dD][a-z]*|--dec\w*", word) for word in words)
    return _decoded(_source(words, stdin, scope), base64.b64decode) if decodes else None


def _base32(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    decodes = any(re.fullmatch(r"-[a-z]*d[a-z]*|--dec\w*", word) for word in words)
    return _decoded(_source(words, stdin, scope), base64.b32decode) if decodes else None


def _xxd(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    if not any("r" in word for word in words if word.startswith("-")):
        return None
    return _decoded(_source(words, stdin, scope), lambda t: bytes.fromhex(t.decode()))


def _openssl(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    asked = set(words)
    if asked & {"base64", "-base64", "-a", "enc"} and "-d" in asked and not any("aes" in w for w in words):
        return _decoded(_source([], stdin, scope), base64.b64decode)
    return None


def _rev(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    source = _source(words, stdin, scope)
    if source is None or not certain(source):
        return None
    return "\n".join(line[::-1] for line in source.split("\n"))


def _tac(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    source = _source(words, stdin, scope)
    return None if source is None else "".join(reversed(source.splitlines(keepends=True)))


def _tr(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    del scope
    if stdin is None or not certain(stdin) or any(not certain(word) for word in words):
        return None
    match list(words):
        case [option, taken] if option in ("-d", "--delete"):
            gone = set(_set(taken))
            return "".join(char for char in stdin if char not in gone)
        case [first, second] if not first.startswith("-") and second:
            old, new = _set(first), _set(second)
            return stdin.translate(dict(zip(map(ord, old), new.ljust(len(old), new[-1]), strict=False)))
        case _:
            return None


def _sed(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    """One plain substitution, as in `sed s/x//g`."""
    del scope
    asked = [word for word in words if word != "-e"]
    found = re.fullmatch(r"s(.)([^\\.*\[\]^$]*?)\1([^\\&]*?)\1(g?)", asked[0]) if len(asked) == 1 else None
    if stdin is None or found is None or not certain(stdin + asked[0]):
        return None
    return "\n".join(line.replace(found[2], found[3], -1 if found[4] else 1) for line in stdin.split("\n"))


def _unquoted(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    source = _source(words, stdin, scope)
    return None if source is None else unquote(source)


def _passed(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    """Of a program that prints some lines of what it reads: all of them at most."""
    del words, scope
    return stdin


def _source(words: Sequence[str], stdin: str | None, scope: Scope) -> str | None:
    names = [word for word in words if not word.startswith("-")]
    if not names:
        return stdin
    return scope.content(names[-1])


def _decoded(source: str | None, decode: Callable[[bytes], bytes]) -> str | None:
    if source is None or not certain(source):
        return None
    try:
        text = decode(re.sub(r"\s", "", source).encode()).decode()
    except (ValueError, binascii.Error):
        return None
    return re.sub("[\ue000-\ue0ff]", UNKNOWN, text)


def _set(text: str) -> str:
    text = wording.ansi(text)
    for name, chars in (
        ("[:upper:]", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), ("[:lower:]", "abcdefghijklmnopqrstuvwxyz"),
        ("[:digit:]", "0123456789"), ("[:space:]", " \t\n\r\v\f"),
    ):  # fmt: skip
        text = text.replace(name, chars)
    return re.sub(
        r"(.)-(.)", lambda m: "".join(chr(code) for code in range(ord(m[1]), ord(m[2]) + 1)), text, flags=re.DOTALL
    )


_PRINTS: Mapping[str, Callable[[Sequence[str], str | None, Scope], str | None]] = {
    "echo": _echo, "printf": _printf, "cat": _cat, "tee": _passed, "base64": _base64, "base32": _base32, "xxd": _xxd,
    "openssl": _openssl, "rev": _rev, "tac": _tac, "tr": _tr, "sed": _sed, "urldecode": _unquoted,
}  # fmt: skip

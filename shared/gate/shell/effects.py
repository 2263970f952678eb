"""What a program of a line changes for those after it: files it wrote, variables, where the shell stands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shared.gate.shell import feed as feeding
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import HOME, STAR, UNKNOWN, plain
from shared.gate.shell.scope import Scope
from shared.gate.targets import How, targets

if TYPE_CHECKING:
    from shared.gate.shell.walk import Feed, Walk


def note(walk: Walk, argv: tuple[str, ...], scope: Scope, feed: Feed, said: str | None, *, more: bool = False) -> None:
    walk.reading.invocations.append(
        Invocation(
            argv, walk.env, walk.redirects, scope.cwd, walk.via, feed.text if feed.fed else None, feed.fed, feed.by,
            more, walk.remote,
        )
    )  # fmt: skip
    for redirect in walk.redirects:
        if redirect.writes:
            appended = scope.content(path_of(redirect.target)) if ">>" in redirect.operator else ""
            known = said is not None and appended is not None
            scope.write(path_of(redirect.target), (appended or "") + (said or "") if known else None)
    words = list(argv)
    tees = bool(words) and words[0].rpartition("/")[2] == "tee"
    copies = len(words) > 2 and words[0].rpartition("/")[2] in ("cp", "mv", "ln", "install")
    source = scope.content(path_of(words[-2])) if copies else None
    for target in targets(replace(walk.reading.invocations[-1], redirects=())):
        if target.how is How.WRITES and source is None and not tees:
            scope.write(path_of(target.word), None)
    if tees:
        for word in words[1:]:
            scope.write(path_of(word), feed.text if feed.fed else None)
    if source is not None:
        scope.write(path_of(words[-1]), source)


def path_of(word: str) -> str:
    return posixpath.normpath(plain(word))


def changes(argv: Sequence[str], scope: Scope, feed: Feed) -> None:
    """Builtins that change what follows."""
    name, rest = argv[0].rpartition("/")[2], list(argv[1:])
    if "--" in rest:
        rest.remove("--")
    match name:
        case "cd" | "pushd":
            asked = [word for word in rest if not word.startswith("-") or word == "-"]
            scope.cwd = _entered(scope.cwd, asked[0] if asked else HOME)
        case "popd":
            scope.cwd = UNKNOWN
        case "read" | "mapfile" | "readarray" | "getopts":
            _read(rest, scope, feed)
        case "printf" if rest[:1] == ["-v"] and len(rest) > 2:
            said = feeding.printed(["printf", *rest[2:]], None, scope)
            scope.set(rest[1], UNKNOWN if said is None else said)
        case "set" if rest and rest[0] not in ("-e", "-u", "-x", "-o", "-eu", "-ex", "-euo", "-euxo"):
            scope.arguments = list(rest)
            scope.loose = any(UNKNOWN in word or STAR in word for word in rest)
        case "shift":
            scope.arguments = scope.arguments[1:]
        case "let" | "export" | "declare" | "typeset" | "local" | "readonly":
            for word in rest:
                given, equals, value = word.partition("=")
                if equals and re.fullmatch(r"\w+", given):
                    scope.set(given, UNKNOWN if name == "let" else plain(value))
        case _:
            pass


def _read(rest: Sequence[str], scope: Scope, feed: Feed) -> None:
    names = [word for word in rest if re.fullmatch(r"[A-Za-z_]\w*", word)] or ["REPLY"]
    line = feed.text.split("\n", 1)[0] if feed.fed and feed.text is not None else UNKNOWN
    line = UNKNOWN if "\\" in line or UNKNOWN in line else line
    parts = line.split(None, len(names) - 1) if line != UNKNOWN else []
    for index, name in enumerate(names):
        value = UNKNOWN if line == UNKNOWN else parts[index] if index < len(parts) else ""
        scope.set(name, value)


def _entered(cwd: str, target: str) -> str:
    if target == "-":
        return UNKNOWN
    if target.startswith(("/", HOME)):
        return posixpath.normpath(target)
    return posixpath.normpath(posixpath.join(cwd, target)) if cwd != UNKNOWN else UNKNOWN

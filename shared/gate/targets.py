"""Which paths a program would write, move or take away, by its words and redirections."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from shared.gate.options import Programs, is_program, parse
from shared.gate.shell.found import Invocation


class How(Enum):
    WRITES = auto()  # its content
    REMOVES = auto()  # it, or the name that it has
    LINKS = auto()  # gives it another name, by which it could be written
    EXTRACTS = auto()  # below it, whatever an archive holds
    MARKS = auto()  # its rights or owner


@dataclass(frozen=True, slots=True)
class Target:
    how: How
    word: str


def targets(call: Invocation) -> Iterator[Target]:
    """In the order of the words."""
    for redirect in call.redirects:
        if redirect.writes:
            yield Target(How.WRITES, redirect.target)
    if not call.argv:
        return
    for found in _PROGRAMS.of(call.program):
        yield from found(call)
    if call.program in ("git", "hub"):
        yield from _git(call)


def _operands(how: How, valued: str = "", *, skip: int = 0) -> Callable[[Invocation], Iterator[Target]]:
    def found(call: Invocation) -> Iterator[Target]:
        for word in parse(call.words, valued).operands[skip:]:
            yield Target(how, word)

    return found


def _copied(call: Invocation) -> Iterator[Target]:
    """The last word, or the folder of `-t`, with each source's name below it where it may be a folder."""
    asked = parse(call.words, "-t --target-directory -S --suffix -m --mode -o --owner -g --group")
    folder = asked.value("-t", "--target-directory")
    sources = asked.operands if folder is not None else asked.operands[:-1]
    goal = folder if folder is not None else asked.operands[-1] if len(asked.operands) > 1 else None
    if goal is not None:
        yield Target(How.WRITES, goal)
        for source in sources:
            yield Target(How.WRITES, f"{goal.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}")
    if call.program == "mv":
        yield from (Target(How.REMOVES, source) for source in sources)
    if call.program in ("ln", "link") or (call.program == "cp" and asked.has("ls", "link", "symbolic-link")):
        yield from (Target(How.LINKS, source) for source in sources)
        if len(asked.operands) == 1:
            yield Target(How.LINKS, asked.operands[0])


def _in_place(call: Invocation) -> Iterator[Target]:
    asked = parse(call.words, "-e -f --expression --file -I -s")
    spelled = any(re.match(r"-[A-Za-z0-9]*i|--in-place", word) for word in call.words)
    text = " ".join(call.words)
    if spelled:
        has_script = asked.value("-e", "--expression", "-f", "--file") is not None
        yield from (Target(How.WRITES, word) for word in asked.operands[0 if has_script else 1 :])
        if not has_script and asked.operands:
            yield from (Target(How.WRITES, word) for word in asked.operands[:1] if "/" not in word and "." in word)
    if call.program in ("sed", "gsed", "awk", "gawk", "mawk"):
        for name in re.findall(r"""(?:/w|\bw|>>?)\s*"?([\w./~-]+)""", text):
            yield Target(How.WRITES, name)


def _output(*options: str) -> Callable[[Invocation], Iterator[Target]]:
    def found(call: Invocation) -> Iterator[Target]:
        asked = parse(call.words, " ".join(options))
        yield from (Target(How.WRITES, value) for option, value in asked.values if option in options)

    return found


def _dd(call: Invocation) -> Iterator[Target]:
    yield from (Target(How.WRITES, word[3:]) for word in call.words if word.startswith("of="))


def _fetched(call: Invocation) -> Iterator[Target]:
    yield from _output("-o", "--output", "--output-document", "-P", "--output-dir", "--directory-prefix")(call)
    asked = parse(call.words, "-O -o -P")
    if is_program(call.program, "wget") and (name := asked.value("-O")) is not None:
        yield Target(How.WRITES, name)
    by_name = (
        call.program == "wget" or asked.has("", "remote-name") or ("O" in asked.letters and call.program == "curl")
    )
    if by_name:
        for word in asked.operands:
            yield Target(How.WRITES, re.split(r"[?#]", word)[0].rstrip("/").rpartition("/")[2] or "index.html")


def _tar(call: Invocation) -> Iterator[Target]:
    first = call.words[0] if call.words else ""
    asked = parse(call.words, "-C --directory -f --file")
    if ("x" in first.lstrip("-") and not first.startswith("--")) or asked.has("x", "extract", "get"):
        yield Target(How.EXTRACTS, asked.value("-C", "--directory") or ".")
        yield from (
            Target(How.WRITES, word)
            for word in asked.operands[1:]
            if not word.endswith((".tar", "gz", "xz", "bz2", "zst"))
        )
    elif "c" in first.lstrip("-") or asked.has("c", "create"):
        file = asked.value("-f", "--file") or (asked.operands[1] if len(asked.operands) > 1 and "f" in first else None)
        if file:
            yield Target(How.WRITES, file)


def _unzip(call: Invocation) -> Iterator[Target]:
    asked = parse(call.words, "-d -o -x")
    yield Target(How.EXTRACTS, asked.value("-d") or ".")
    yield from (Target(How.WRITES, word) for word in asked.operands[1:])


def _patched(call: Invocation) -> Iterator[Target]:
    asked = parse(call.words, "-i --input -o --output -d --directory -p -r")
    yield from (Target(How.WRITES, word) for word in asked.operands[:1])
    text = call.stdin or ""
    yield from (Target(How.WRITES, name) for name in re.findall(r"(?m)^(?:\+\+\+|---) (?:[ab]/)?(\S+)", text))


def _found(call: Invocation) -> Iterator[Target]:
    words = list(call.words)
    if "-delete" in words:
        starts = list(_before_tests(words)) or ["."]
        yield from (Target(How.REMOVES, word) for word in starts)
    for option, target in itertools.pairwise(words):
        if option in ("-fprint", "-fprint0", "-fls", "-fprintf"):
            yield Target(How.WRITES, target)


def _before_tests(words: list[str]) -> Iterator[str]:
    for word in words:
        if word.startswith(("-", "(", "!")):
            if word in ("-L", "-H", "-P"):
                continue
            return
        yield word


def _edited(call: Invocation) -> Iterator[Target]:
    """An editor that is given a file may write it."""
    yield from (
        Target(How.WRITES, word) for word in parse(call.words, "-c -S --cmd -u").operands if not word.startswith("+")
    )


def _git(call: Invocation) -> Iterator[Target]:
    asked = parse(call.words, "-C -c --git-dir --work-tree -m -F -b -B -s --source -o")
    if not asked.operands:
        return
    sub, rest = asked.operands[0], asked.operands[1:]
    match sub:
        case "checkout" | "restore" | "mv":
            yield from (Target(How.WRITES, word) for word in rest)
        case "rm":
            yield from (Target(How.REMOVES, word) for word in rest)
        case "apply" | "am":
            text = call.stdin or ""
            yield from (Target(How.WRITES, name) for name in re.findall(r"(?m)^(?:\+\+\+|---) (?:[ab]/)?(\S+)", text))
        case "show" | "diff" | "log" | "format-patch" | "archive":
            output = parse(call.words, "--output -o").value("--output", "-o")
            if output is not None:
                yield Target(How.WRITES, output)
        case "clone" | "init":
            yield from (Target(How.WRITES, word) for word in rest[1 if sub == "clone" else 0 :])
        case _:
            pass


_PROGRAMS = Programs[Callable[[Invocation], Iterator[Target]]]({
    "tee sponge": _operands(How.WRITES),
    "touch truncate": _operands(How.WRITES, "-s --size -r --reference -d --date -t"),
    "cp mv ln link install rsync scp gcp gmv": _copied,
    "sed gsed perl ruby awk gawk mawk": _in_place,
    "dd gdd": _dd,
    "rm unlink rmdir shred srm trash grm wipe": _operands(How.REMOVES, "-n --iterations -s --size"),
    "chmod chown chgrp chattr setfacl": _operands(How.MARKS, "--reference -m -x", skip=1),
    "curl wget": _fetched,
    "tar bsdtar gtar": _tar,
    "unzip 7z 7za unar": _unzip,
    "patch": _patched,
    "find gfind": _found,
    "vi vim nvim ex view ed nano emacs emacsclient pico micro joe mcedit": _edited,
    "sort uniq gcc cc g++ clang ld as go rustc tsc openssl pandoc gpg age jq yq tree iconv xxd": _output(
        "-o", "--output", "-out"
    ),
    "mkfifo mknod": _operands(How.WRITES),
    "split csplit": _output("--additional-suffix"),
    "crontab": _operands(How.WRITES),
})  # fmt: skip

"""Programs that start other programs: `sudo`, `env`, `xargs`, `find -exec` and their kin, as a table.

What a program starts is a command of words, or a text that a shell reads. A wrapper that is not understood says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shared.gate.options import names
from shared.gate.shell.marks import UNKNOWN
from shared.gate.shell.plain_wrappers import PLAIN


@dataclass(frozen=True, slots=True)
class Words:
    """A command of words. `more`: others are added that nobody knows; `fed` with what stdin holds, where it does."""

    argv: tuple[str, ...]
    more: bool = False
    env: tuple[tuple[str, str], ...] = ()
    from_stdin: bool = False
    remote: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """What a shell reads; with `arguments` as its `$1` and on. `here`: the shell of the line itself reads it."""

    text: str
    arguments: tuple[str, ...] = ()
    here: bool = False
    remote: bool = False
    called: str | None = None
    """Its `$0`, where it is given one."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """It starts something, and what is not known."""

    why: str


Started = Words | Text | Unclear
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")

_NO_COMMAND: Mapping[str, frozenset[str]] = {
    "command": frozenset({"-v", "-V"}), "ionice": frozenset({"-p"}), "chrt": frozenset({"-p"}),
    "taskset": frozenset({"-p"}), "prlimit": frozenset({"--pid", "-p"}),
}  # fmt: skip
_SHELLS = names("sh bash dash zsh ksh mksh ash fish rbash csh tcsh yash pwsh")
_LOADER = re.compile(r"ld(?:-linux[\w.-]*|-musl[\w.-]*|-\d[\w.-]*)\.so[.\d]*$")


def started(argv: Sequence[str]) -> list[Started]:
    """What a program with these words starts beside itself; nothing where it is no wrapper."""
    name = argv[0].rpartition("/")[2]
    if _LOADER.match(name):
        name = "ld.so"
    own = _OWN.get(name)
    if own is not None:
        return own(argv[1:])
    if name in _SHELLS:
        return _shell(argv[1:])
    two = " ".join((name, *argv[1:2]))
    if two in PLAIN:
        return _after(two, argv[2:])
    if name in PLAIN:
        return _after(name, argv[1:])
    return []


def is_shell(program: str) -> bool:
    return program in _SHELLS


def _after(name: str, words: Sequence[str]) -> list[Started]:
    options, before = PLAIN[name]
    if _NO_COMMAND.get(name, frozenset()) & set(words):
        return []
    rest = _skipped(_skipped(words, options)[before:], options)
    if name == "coproc" and any(word.startswith("{") for word in rest):
        return [Unclear("several commands run beside the line")]
    env = list[tuple[str, str]]()
    while rest and name in ("doas", "dotenv run", "systemd-run") and _ASSIGNED.match(rest[0]):
        env.append(_pair(rest.pop(0)))
    return [Words(tuple(rest), env=tuple(env))] if rest else []


def _skipped(words: Sequence[str], valued: frozenset[str]) -> list[str]:
    """Without the leading options and what belongs to them."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option in valued and rest:
            rest.pop(0)
    return rest


def _pair(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.removesuffix("+"), value


def _env(words: Sequence[str]) -> list[Started]:
    rest, env = list(words), list[tuple[str, str]]()
    while rest:
        word = rest.pop(0)
        if word in ("-u", "--unset", "-C", "--chdir", "-a", "--argv0"):
            rest[:1] = []
        elif word in ("-S", "--split-string") or word.startswith(("-S", "--split-string=", "-vS", "-iS")):
            text = rest.pop(0) if word in ("-S", "--split-string", "-vS", "-iS") and rest else word
            text = re.sub(r"^(?:-\w*S|--split-string=?)", "", text)
            return [Text(" ".join([text, *rest]), here=False)]
        elif _ASSIGNED.match(word):
            env.append(_pair(word))
        elif not word.startswith("-") or word == "--":
            argv = rest if word == "--" else [word, *rest]
            return [Words(tuple(argv), env=tuple(env))] if argv else []
    return []


_SUDO = names("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot")


def _sudo(words: Sequence[str]) -> list[Started]:
    rest, env = _skipped(words, _SUDO), list[tuple[str, str]]()
    while rest and _ASSIGNED.match(rest[0]):
        env.append(_pair(rest.pop(0)))
    return [Words(tuple(rest), env=tuple(env))] if rest else []


def _su(words: Sequence[str]) -> list[Started]:
    for index, word in enumerate(words[:-1]):
        if re.fullmatch(r"-\w*c|--command", word):
            return [Text(words[index + 1])]
    return [Text(w.partition("=")[2]) for w in words if w.startswith("--command=")]


def _shell(words: Sequence[str]) -> list[Started]:
    """`-c TEXT [NAME ARGUMENT…]`. A file, or standard input, is for whoever knows what stands there."""
    rest = list(words)
    wants = False
    while rest and (rest[0].startswith("-") or rest[0].startswith("+")) and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option in ("--rcfile", "--init-file"):
            return [Unclear("a shell reads a start file")]
        if re.fullmatch(r"[-+]\w*[oO]", option) and "c" not in option:
            rest[:1] = []
        wants = wants or bool(re.fullmatch(r"-\w*c\w*", option)) or option in ("-Command", "--command")
    if not wants:
        return []
    return [Text(rest[0], tuple(rest[2:]), called=rest[1] if len(rest) > 1 else None)] if rest else []


def _eval(words: Sequence[str]) -> list[Started]:
    rest = list(words[1:] if words[:1] == ("--",) else words)
    if rest and rest[0].startswith("-"):
        return [Unclear("eval takes its first word for an option")]
    return [Text(" ".join(rest), here=True)] if rest else []


def _trap(words: Sequence[str]) -> list[Started]:
    rest = [word for word in words if word not in ("-l", "-p", "--")]
    return [Text(rest[0], here=True)] if len(rest) > 1 and rest[0] not in ("", "-") else []


def _alias(words: Sequence[str]) -> list[Started]:
    return [Text(word.partition("=")[2], here=True) for word in words if "=" in word]


_XARGS = names(
    "-I -i -n -L -P -s -d -a -E --max-args --max-procs --delimiter --arg-file --max-lines --replace --max-chars"
)


def _xargs(words: Sequence[str]) -> list[Started]:
    rest = _skipped(words, _XARGS)
    if not rest:
        return [Words(("echo",), more=True, from_stdin=True)]
    hole = next((words[n + 1] for n, w in enumerate(words[:-1]) if w in ("-I", "--replace")), None)
    hole = hole or next((w[2:] for w in words if re.match(r"-I.", w)), None)
    if hole is None:
        return [Words(tuple(rest), more=True, from_stdin=True)]
    return [Words(tuple(word.replace(hole, UNKNOWN) for word in rest))]


def _find(words: Sequence[str]) -> list[Started]:
    found, rest = list[Started](), list(words)
    while rest:
        if rest.pop(0) not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        argv = list[str]()
        while rest and rest[0] not in (";", "+"):
            argv.append(rest.pop(0).replace("{}", UNKNOWN))
        if argv:
            found.append(Words(tuple(argv)))
    return found


def _fd(words: Sequence[str]) -> list[Started]:
    for index, word in enumerate(words):
        if word in ("-x", "-X", "--exec", "--exec-batch") and words[index + 1 :]:
            return [Words(tuple(w.replace("{}", UNKNOWN) for w in words[index + 1 :]), more=True)]
    return []


def _ssh(words: Sequence[str]) -> list[Started]:
    rest = _skipped(words, names("-p -i -l -o -F -J -L -R -D -b -c -e -m -S -W -w -E -I -Q -B"))
    proxy = [
        Text(w.partition("=")[2]) for w in words if re.match(r"(?:-o)?(?:ProxyCommand|LocalCommand)=", w, re.IGNORECASE)
    ]
    command = _skipped(rest[1:], names("-p -i -l -o"))
    return [*proxy, *([Text(" ".join(command), remote=True)] if command else [])]


_CONTAINER = names(
    "-e --env -v --volume -p --publish -w --workdir -u --user --name --network --net --mount --entrypoint -l"
    " --label"
    " --env-file -h --hostname -m --memory --cpus --platform --add-host --cap-add --device --gpus --shm-size --pull"
    " --restart --security-opt --tmpfs --ulimit --userns --pid --ipc -f --file --project-name --profile -n --namespace"
    " -c --container --index"
)


def _container(words: Sequence[str]) -> list[Started]:
    """What runs inside: nothing of this host, but for what is mounted."""
    rest = _skipped(words, _CONTAINER)
    if rest[:1] == ["compose"] or rest[:1] == ["container"]:
        rest = _skipped(rest[1:], _CONTAINER)
    if rest[:1] not in (["run"], ["exec"]):
        return []
    inside = _skipped(rest[1:], _CONTAINER)[1:]
    inside = inside[1:] if inside[:1] == ["--"] else inside
    return [Words(tuple(inside), remote=True)] if inside else []


def _kubectl(words: Sequence[str]) -> list[Started]:
    if "exec" in words and "--" in words:
        inside = words[list(words).index("--") + 1 :]
        return [Words(tuple(inside), remote=True)] if inside else []
    return []


def _valued_text(*names: str) -> Callable[[Sequence[str]], list[Started]]:
    """A text for a shell is the word after one of these options."""

    def found(words: Sequence[str]) -> list[Started]:
        pairs = itertools.pairwise(words)
        return [Text(text) for option, text in pairs if option in names]

    return found


def _watch(words: Sequence[str]) -> list[Started]:
    rest = _skipped(words, frozenset({"-n", "--interval", "-d", "-q"}))
    return [Text(" ".join(rest))] if rest else []


def _flock(words: Sequence[str]) -> list[Started]:
    text = _valued_text("-c", "--command")(words)
    rest = _skipped(words, frozenset({"-w", "-E", "--timeout"}))[1:]
    rest = _skipped(rest, frozenset()) if text else rest
    return text or ([Words(tuple(rest))] if rest else [])


def _parallel(words: Sequence[str]) -> list[Started]:
    rest = _skipped(
        words, frozenset({"-j", "--jobs", "-a", "--arg-file", "--colsep", "-I", "-n", "-N", "-S", "--delay"})
    )
    given = f" {UNKNOWN}"
    for mark in (":::", "::::", ":::+"):
        if mark in rest:
            given = " " + " ".join(rest[rest.index(mark) + 1 :]) if mark == ":::" else given
            rest = rest[: rest.index(mark)]
    if not rest:
        return [Unclear("parallel reads commands")]
    text = " ".join(rest)
    return [Text(text.replace("{}", given) if "{}" in text else text + given)]


def _tmux(words: Sequence[str]) -> list[Started]:
    rest = _skipped(words, frozenset({"-L", "-S", "-f"}))
    if rest[:1] and rest[0] in (
        "new-session",
        "new",
        "new-window",
        "neww",
        "split-window",
        "splitw",
        "send-keys",
        "send",
        "run-shell",
        "run",
    ):
        inner = _skipped(rest[1:], frozenset({"-s", "-n", "-c", "-t", "-x", "-y", "-e", "-F", "-l", "-p"}))
        return [Text(" ".join(word for word in inner if word not in ("Enter", "C-m")))] if inner else []
    return []


def _screen(words: Sequence[str]) -> list[Started]:
    rest = _skipped(words, frozenset({"-S", "-dmS", "-dmSL", "-c", "-t", "-X", "-p"}))
    return [Words(tuple(rest))] if rest else []


def _package_program(words: Sequence[str]) -> list[Started]:
    """`npx NAME`, and `npm exec -c TEXT`."""
    text = _valued_text("-c", "--call")(words)
    rest = _skipped(words, names("-p --package -c --call --from --with --python"))
    if text or not rest or "://" in rest[0]:
        return text
    return [Words((rest[0].rpartition("@")[0] or rest[0] if not rest[0].startswith("@") else rest[0], *rest[1:]))]


def _npm(words: Sequence[str]) -> list[Started]:
    if list(words[:1]) in (["exec"], ["x"], ["dlx"]):
        return _package_program([word for word in words[1:] if word != "--"])
    if list(words[:1]) == ["explore"] and "--" in words:
        return [Words(tuple(words[list(words).index("--") + 1 :]))]
    return []


def _module(words: Sequence[str]) -> list[Started]:
    """`python -m pip …` is pip."""
    rest = list(words)
    if "-m" in rest[:4] and rest[rest.index("-m") + 1 :][:1] == ["pip"]:
        return [Words(tuple(rest[rest.index("-m") + 1 :]))]
    return []


def _typed(words: Sequence[str]) -> list[Started]:
    del words
    return [Unclear("it types in place of a person")]


def _scheduled(words: Sequence[str]) -> list[Started]:
    del words
    return [Unclear("it starts a program later, when nobody looks")]


_OWN: Mapping[str, Callable[[Sequence[str]], list[Started]]] = {
    "env": _env, "sudo": _sudo, "su": _su, "eval": _eval, "trap": _trap, "alias": _alias, "xargs": _xargs,
    "gxargs": _xargs, "find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd, "ssh": _ssh, "docker": _container,
    "podman": _container, "nerdctl": _container, "docker-compose": _container, "kubectl": _kubectl, "oc": _kubectl,
    "script": _valued_text("-c", "--command", "-qc"), "nix-shell": _valued_text("--run", "--command"), "watch": _watch,
    "sg": _valued_text("-c"), "flock": _flock, "parallel": _parallel, "tmux": _tmux, "screen": _screen,
    "at": _scheduled, "batch": _scheduled, "nix": _valued_text("-c", "--command"),
    "runcon": lambda w: [Words(tuple(w[1:]))],
    "npx": _package_program, "bunx": _package_program, "pnpx": _package_program, "uvx": _package_program, "npm": _npm,
    "pnpm": _npm, "yarn": _npm, "python": _module, "python3": _module, "expect": _typed, "autoexpect": _typed,
    "capsh": _valued_text("-c"), "gdb": lambda w: [Words(tuple(w[w.index("--args") + 1 :]))] if "--args" in w else [],
}  # fmt: skip

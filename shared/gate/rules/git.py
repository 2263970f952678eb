"""git: what throws work away, rewrites what others have, or runs a program named in its configuration."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from shared.gate.options import names, parse
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import shown
from shared.gate.verdict import Decision, Hit

_RUNS = re.compile(
    r"(?i)^(?:alias\..*|core\.(?:editor|pager|sshcommand|fsmonitor|hookspath|askpass|gitproxy|attributesfile)"
    r"|diff\..*(?:command|textconv)|diff\.external"
    r"|merge\..*\.driver|filter\..*|sequence\.editor|credential\..*|gpg\..*program|pager\..*|protocol\..*"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)"
    r"|uploadpack\..*|difftool\..*|mergetool\..*|browser\..*|man\..*|init\.templatedir|include.*|url\..*"
    r"|http\..*|submodule\..*\.update|ssh\.variant|commit\.template|sendemail\..*)$"
)
_VALUED = "-C -c --git-dir --work-tree --namespace --exec-path --config-env"
_READ_CONFIG = frozenset({"--get", "--get-all", "--list", "-l", "--get-regexp", "--show-origin", "get", "list"})
_UNKNOWN_TO_ALL = names(
    "daemon instaweb shell http-backend remote-ext remote-fd cvsserver send-email svn p4 imap-send credential"
    " upload-pack receive-pack"
)
_KNOWN = names("""
    add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-ref-format
    checkout cherry cherry-pick clean clone commit commit-tree config count-objects describe diff diff-files
    diff-index diff-tree difftool fast-export fetch filter-branch filter-repo for-each-ref format-patch fsck gc grep
    gui hash-object help init interpret-trailers lfs log ls-files ls-remote ls-tree maintenance merge merge-base
    merge-file merge-tree mergetool mktree mv name-rev notes pack-refs prune pull push range-diff read-tree rebase
    reflog remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm shortlog show
    show-branch show-ref sparse-checkout stage stash status submodule switch symbolic-ref tag update-index update-ref
    var verify-commit verify-pack verify-tag version whatchanged worktree write-tree flow absorb town secret crypt svn
    p4 cvsserver daemon instaweb send-email credential
    """)


def hits(call: Invocation) -> Iterator[Hit]:
    if call.program not in ("git", "hub"):
        return
    before, sub, rest = _split(call.words)
    for option, value in itertools.pairwise(before):
        if option in ("-c", "--config-env") and _RUNS.match(value.partition("=")[0]):
            yield _hit("git.configured", f"it has git run or trust what {shown(value.partition('=')[0])} says", call)
        if option == "--exec-path":
            yield _hit("git.configured", "it has git run programs from another folder", call)
    if any(word.startswith("--exec-path=") for word in before):
        yield _hit("git.configured", "it has git run programs from another folder", call)
    if sub and sub not in _KNOWN:
        yield _hit("git.unknown", f"git {shown(sub)} may be an alias, which is not known here", call)
    if sub in _UNKNOWN_TO_ALL:
        yield _hit("git.serves", f"git {sub} talks to others, or starts programs", call)
    for option in rest:
        short = {"grep": "-O", "difftool": "-x", "rebase": "-x"}.get(sub)
        named = re.match(r"--(?:upload-pack|receive-pack|exec|extcmd|open-files-in-pager)(?:=|$)", option)
        if named is not None or (short is not None and option.startswith(short)):
            yield _hit("git.configured", "it names a program that git is to run", call)
    if any(re.match(r"(?:ext|fd)::", word) for word in rest):
        yield _hit("git.configured", "the address that it names is a command", call)
    yield from _of(sub, rest, call)


def texts(call: Invocation) -> list[str]:
    """Commands for a shell that stand in its words."""
    if call.program not in ("git", "hub"):
        return []
    before, sub, rest = _split(call.words)
    found = [
        value.partition("=")[2].removeprefix("!") for option, value in itertools.pairwise(before) if option == "-c"
    ]
    found += [word.partition("::")[2] for word in rest if word.startswith("ext::")]
    found += [word.partition("=")[2] for word in rest if re.match(r"--(?:upload-pack|receive-pack|exec|extcmd)=", word)]
    pairs = list(itertools.pairwise(rest))
    found += [
        value
        for option, value in pairs
        if option in ("-x", "--exec", "--extcmd", "--upload-pack", "--receive-pack", "-X")
    ]
    if sub in ("bisect", "submodule") and len(rest) > 1 and rest[0] in ("run", "foreach"):
        found.append(" ".join(word for word in rest[1:] if word != "--recursive"))
    if sub == "filter-branch":
        found += [value for option, value in pairs if option.endswith("-filter")]
    if sub == "config":
        found += [value.removeprefix("!") for option, value in pairs if _RUNS.match(option)]
    return [text for text in found if text]


def _split(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    rest, before = list(words), list[str]()
    takes = frozenset(_VALUED.split())
    while rest and rest[0].startswith("-"):
        before.append(rest.pop(0))
        if before[-1] in takes and rest:
            before.append(rest.pop(0))
    return before, rest[0] if rest else "", rest[1:]


def _of(sub: str, rest: list[str], call: Invocation) -> Iterator[Hit]:
    asked = parse(rest, "-m -b -B -C -c -F -s --source --message")
    match sub:
        case "push":
            yield from _push(rest, call)
        case "reset" if asked.has("", "hard", "merge", "keep"):
            yield _hit("git.discards", "it throws away changes that were not committed", call)
        case "clean" if not asked.has("n", "dry-run"):
            yield _hit("git.discards", "it deletes files that git does not know", call)
        case "branch" if "D" in asked.letters or (asked.has("d", "delete") and asked.has("f", "force")):
            yield _hit("git.discards", "it deletes a branch whose commits may be nowhere else", call)
        case "checkout" | "switch":
            if (
                asked.has("f", "force", "discard-changes")
                or any(word in (".", ":/", "*", "\ue002") for word in asked.operands)
                or "--" in rest
            ):
                yield _hit("git.discards", "it throws away changes that were not committed", call)
        case "restore" if not asked.has("S", "staged") or asked.has("W", "worktree"):
            yield _hit("git.discards", "it throws away changes that were not committed", call)
        case "stash" if asked.operands[:1] in (("drop",), ("clear",)):
            yield _hit("git.discards", "it throws away what was put aside", call)
        case "worktree" if "remove" in asked.operands and asked.has("f", "force"):
            yield _hit("git.discards", "it deletes a working tree with its changes", call)
        case "filter-branch" | "filter-repo" | "replace":
            yield _hit("git.rewrites", "it rewrites the whole history", call)
        case "reflog" if asked.operands[:1] in (("expire",), ("delete",)):
            yield _hit("git.discards", "it forgets commits that could still be found", call)
        case "gc" | "prune" | "maintenance" if (
            any(("prune" in word and "now" in word) or "all" in word for word in rest) or sub == "prune"
        ):
            yield _hit("git.discards", "it deletes commits that could still be found", call)
        case "update-ref" if asked.has("d", "delete", "stdin"):
            yield _hit("git.discards", "it deletes a reference", call)
        case "remote" if asked.operands[:1] in (("add",), ("set-url",)):
            yield _hit("git.remote", "it says where the work is sent from now on", call)
        case "config":
            yield from _config(rest, call)
        case _:
            pass


def _push(rest: list[str], call: Invocation) -> Iterator[Hit]:
    asked = parse(rest, "-o --push-option --repo")
    if asked.has("f", "force", "force-with-lease", "mirror"):
        yield _hit("git.force_push", "it overwrites what others have", call)
    if asked.has("d", "delete", "prune") or any(re.match(r"\+|:.", word) for word in asked.operands[1:]):
        yield _hit("git.force_push", "it deletes or overwrites a branch that others have", call)
    if asked.operands and re.search(r"://|^[\w.-]+@[\w.-]+:|^[./~]", asked.operands[0]):
        yield _hit("git.remote", "it sends the work to an address that is named here", call)


def _config(rest: list[str], call: Invocation) -> Iterator[Hit]:
    if _READ_CONFIG & set(rest):
        return
    names = [word for word in rest if not word.startswith("-")]
    names = names[1:] if names[:1] in (["set"], ["unset"], ["edit"]) else names
    if len(names) < 2 and not {"--unset", "--edit", "-e", "--remove-section", "--unset-all"} & set(rest):
        return
    if {"--global", "--system", "-f", "--file", "--edit", "-e"} & set(rest):
        yield _hit("git.config", "it changes settings outside this repository, or all of them", call)
    elif names and _RUNS.match(names[0]):
        yield _hit("git.configured", f"it has git run or trust what {shown(names[0])} says, from now on", call)


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])

"""Files: what is deleted or overwritten, what lies outside the workspace, rights, and what holds secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import is_program, names, parse
from shared.gate.paths import path
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN, certain, shown
from shared.gate.targets import How, targets
from shared.gate.verdict import Decision, Hit

_SECRET = re.compile(
    r"(?:^|/)(?:\.ssh(?:$|/(?!known_hosts|config$|.*\.pub$))|id_(?:rsa|dsa|ecdsa|ed25519)(?!\.pub)"
    r"|\.aws/(?:credentials|config)|\.netrc|\.pgpass|\.my\.cnf"
    r"|\.git-credentials|\.docker/config\.json|\.kube/config|\.gnupg(?:/|$)|\.config/gcloud|\.config/gh/hosts"
    r"|\.azure/|\.vault-token"
    r"|\.npmrc|\.pypirc|\.cargo/credentials|\.password-store|\.bash_history|\.zsh_history|\.python_history"
    r"|\.mysql_history|\.psql_history"
    r"|secrets?\.(?:ya?ml|json|toml|env)|credentials(?:\.json|\.ya?ml)?$|Login Data|cookies\.sqlite"
    r"|key[34]\.db|\.env(?:\.(?!example|sample|template|dist|test)\w+)?$)"
    r"|^/etc/(?:shadow|gshadow|sudoers|ssl/private|ssh/ssh_host)|^/proc/(?:\d+|self|\ue001|\ue002)/(?:environ"
    r"|mem|maps|fd|root|cwd)|^/proc/kcore|\.(?:pem|p12|pfx|jks|keystore|kdbx|ovpn)$"
    r"|^/(?:var/)?run/(?:docker\.sock|secrets)|docker\.sock$|^/var/lib/(?:docker|kubelet)|^/dev/(?:mem|kmem)",
)
_HARMLESS_WITH_SECRETS = names(
    "ls stat file test mkdir touch git rsync cd pushd echo printf basename dirname realpath readlink"
)
_OVER = "shred srm wipe truncate"


def hits(call: Invocation) -> Iterator[Hit]:
    for target in targets(call):
        yield from _of_target(call, target.how, target.word)
    for redirect in call.redirects:
        if not redirect.writes and _SECRET.search(path(redirect.target, call.cwd).text):
            yield _hit("secret.read", f"it reads {shown(redirect.target)}, which may hold a secret", call)
    if call.argv:
        yield from _deletes(call)
        yield from _rights(call)
        yield from _secrets(call)


def _of_target(call: Invocation, how: How, word: str) -> Iterator[Hit]:
    place = path(word, call.cwd)
    if place.unknown:
        if how is How.WRITES and call.redirects and any(r.target == word for r in call.redirects):
            yield _hit("write.unknown", "it writes to a file whose name is not known", call)
        return
    if how is How.MARKS or place.inside or place.scratch:
        return
    if re.match(r"/dev/(?:tcp|udp)/", place.text):
        yield _hit("network.raw", f"it opens a connection to {shown(word)}", call)
    elif not re.match(r"^[\w.-]+@?[\w.-]+:", word):  # scp's other side is told as such
        yield _hit("write.outside", f"it changes {shown(word)}, outside the workspace", call)


def _deletes(call: Invocation) -> Iterator[Hit]:
    if is_program(call.program, "rm grm unlink rmdir trash rimraf del-cli"):
        asked = parse(call.words)
        if asked.has("rR", "recursive") or is_program(call.program, "rimraf del-cli"):
            yield _hit("delete.recursive", "it deletes folders with all that is in them", call)
        elif call.more or asked.unsure or not all(certain(word) for word in asked.operands):
            yield _hit("delete.many", "it deletes files by a pattern, or by names that are not known", call)
    elif is_program(call.program, _OVER):
        asked = parse(call.words, "-s --size -r --reference -n")
        if not (call.program == "truncate" and all(path(word).scratch for word in asked.operands)):
            yield _hit("delete.overwrite", "it overwrites what is in the files", call)
    elif is_program(call.program, "find gfind fd"):
        if "-delete" in call.words:
            yield _hit("delete.found", "it deletes whatever it finds", call)
    elif is_program(call.program, "rsync") and any(
        w.startswith("--del") or w == "--remove-source-files" for w in call.words
    ):
        yield _hit("delete.sync", "it deletes what the other side lacks", call)
    elif call.program == "mv" and call.words[-1:] == ("/dev/null",):
        yield _hit("delete.overwrite", "it moves files to nowhere", call)
    elif call.program in ("dd", "gdd"):
        yield _hit("write.blocks", "it copies blocks over what was there", call)


def _rights(call: Invocation) -> Iterator[Hit]:
    if is_program(call.program, "chmod gchmod"):
        mode = next((w for w in call.words if not w.startswith("-") or re.fullmatch(r"-[rwxst]+", w)), "")
        if (
            re.fullmatch(r"0?[0-7]?[0-7]{2}[2367]|.*[oa]?\+\w*w.*|0?[2467][0-7]{3}|.*\+s.*", mode)
            and not re.fullmatch(r"[ug]\+\w+", mode)
        ) or UNKNOWN in mode:
            yield _hit(
                "rights.wide", f"it opens files to everybody, or lets them run as their owner ({shown(mode)})", call
            )
        elif parse(call.words).has("R", "recursive"):
            yield _hit("rights.recursive", "it changes the rights of a whole folder", call)
        elif re.fullmatch(r"[ug]\+\w*s\w*", mode):
            yield _hit("rights.wide", "it lets a file run as its owner", call)
    elif is_program(call.program, "chown chgrp chattr setfacl setcap"):
        yield _hit("rights.owner", "it changes whose files they are", call)


def _secrets(call: Invocation) -> Iterator[Hit]:
    if call.program in _HARMLESS_WITH_SECRETS:
        return
    words = call.words
    if call.program in ("cp", "mv", "install") and len(words) > 1:
        words = words[:-1]
    if call.program in ("grep", "rg", "egrep", "fgrep", "sed", "awk", "jq", "yq", "find"):
        words = tuple(parse(words, "-e -f -A -B -C -m -g -t").operands[1:])
    for word in words:
        value = (
            word.partition("=")[2]
            if word.startswith("--")
            else word.removeprefix("@").partition("=@")[2] or word.removeprefix("@")
        )
        if _SECRET.search(path(value, call.cwd).text) and not value.endswith(
            (".example", ".sample", ".template", ".pub")
        ):
            yield _hit("secret.read", f"it reads {shown(value)}, which may hold a secret", call)
            return


def _hit(rule: str, why: str, call: Invocation) -> Hit:
    return Hit(rule, Decision.ASK, why, shown(" ".join(call.argv))[:300])

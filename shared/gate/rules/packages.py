"""Packages: what is installed from where, for whom, and what is published."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.gate.options import parse
from shared.gate.shell.found import Invocation
from shared.gate.shell.marks import UNKNOWN

Found = Iterator[tuple[str, str]]


def packages(call: Invocation) -> Found:
    asked = parse(
        call.words,
        "-r -c -e -t -i -o --index-url --extra-index-url --target --prefix -C --registry --directory --python -p",
    ).operands
    verb = " ".join(asked[:1])
    if re.search(r"(?:^| )(?:git\+|https?://|ssh://|git@|file:)", " ".join(call.words)) and call.program != "brew":
        yield "package.elsewhere", "it installs from an address that is named here"
    if (
        {"-i", "--index-url", "--extra-index-url", "--registry", "--trusted-host", "--find-links"}
        & {w.partition("=")[0] for w in call.words}
        and call.program not in ("npm", "brew")
    ) or "--registry" in " ".join(call.words):
        yield "package.elsewhere", "it installs from another registry than the usual one"
    if verb in (
        "publish",
        "unpublish",
        "deprecate",
        "owner",
        "access",
        "token",
        "login",
        "adduser",
        "logout",
        "yank",
        "upload",
        "release",
        "push",
        "hook",
        "dist-tag",
    ):
        yield "publish", "it publishes, or changes what was published"
    if (call.program == "npm" and "-g" in call.words) or "--global" in call.words:
        yield "package.system", "it changes what is installed for everybody"
    if any(UNKNOWN in word for word in asked):
        yield "package.elsewhere", "what it installs is not known"


def system_packages(call: Invocation) -> Found:
    text = " ".join(call.words)
    if not re.search(
        (
            r"^(?:-\S+ )*(?:search|show|list|info|policy|depends|rdepends|madison|leaves|outdated|config|doctor"
            r"|deps|home|check|provides|repolist|-Q|-q|-l|-L|-s|-S|--list|--status|-Ss|-Si|-qa|-ql|-qi)\b"
        ),
        text,
    ):
        yield "package.system", "it changes what is installed on the machine"

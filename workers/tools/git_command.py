"""How git is asked about a stranger's repository: nothing in it may make git run, write, fetch or reach outside.

A repository's configuration names programs (pagers, hooks, drivers, signers, helpers). Each known one is switched off
here; `workers.tools.jobs` moreover forbids git, where the kernel can, to run any program but itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    # Stands above protocol.*.allow, which a repository could set for one protocol: nothing is ever fetched.
    "GIT_ALLOW_PROTOCOL": "none",
}

_SETTINGS = (
    "safe.directory=*",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=",
    "core.sshCommand=false",
    "core.quotePath=false",
    "core.packedGitWindowSize=32m",
    "core.packedGitLimit=256m",
    "protocol.allow=never",
    "log.showSignature=false",
    "log.showRoot=true",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "diff.external=",
    "diff.submodule=short",
    "mailmap.file=",
    "mailmap.blob=",
    "credential.helper=",
    "color.ui=false",
)

_WHERE = ("--no-pager", "--literal-pathspecs", "--git-dir=.git", "--work-tree=.")
_LOG = (
    "log",
    "--no-ext-diff",
    "--no-textconv",
    "-O/dev/null",
    "--no-show-signature",
    "--no-mailmap",
    "--no-notes",
    "--no-decorate",
    "--no-color",
    "--no-renames",
    "--ignore-submodules=all",
    "--submodule=short",
    "--encoding=UTF-8",
    "--date=iso-strict",
    "--abbrev=10",
    "--abbrev-commit",
)


def program() -> str | None:
    """The absolute path of git, or None."""
    found = shutil.which("git")
    return os.path.realpath(found) if found else None


def log_arguments(*, form: str, most: int, since: str, numbers: bool, parts: Sequence[str]) -> list[str]:
    """The command for the history of `parts` in the repository that is the current folder itself."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    wanted = [f"--max-count={most}", f"--format={form}"]
    wanted += [f"--since={since}"] if since else []
    wanted += ["--numstat"] if numbers else []
    path = ["--", "/".join(parts)] if parts else ["--"]
    return ["git", *settings, *_WHERE, *_LOG, *wanted, *path]

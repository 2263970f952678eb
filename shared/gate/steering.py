"""Files that steer what happens later: instructions to agents, hooks, pipelines, start files, editor tasks.

To write one needs a person each time, one operation at a time, whatever was granted and whoever asks, by whatever road.
A name is compared without case and in its compatible form, since some file systems keep neither apart. What a sandbox
mounts it mounts read-only here (`mounts`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from shared.gate.options import names
from shared.gate.shell.marks import ONE, STAR, UNKNOWN, could_be

FILES = names("""
    agents.md agents.override.md agent.md claude.md claude.local.md gemini.md codex.md soul.md hermes.md .hermes.md
    qwen.md conventions.md skill.md .cursorrules .windsurfrules .clinerules .roorules .goosehints .aider.conf.yml
    .rules copilot-instructions.md .mcp.json mcp.json .bashrc .bash_profile .bash_login .bash_logout .bash_aliases
    .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .envrc .xprofile
    .xinitrc .xsessionrc config.fish .gitconfig .gitmodules .pre-commit-config.yaml .pre-commit-config.yml
    lefthook.yml lefthook.yaml .lefthook.yml .gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .cirrus.yml
    .woodpecker.yml .appveyor.yml appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile buildspec.yml
    cloudbuild.yaml .vimrc .exrc .nvimrc .nvim.lua .gvimrc .dir-locals.el .emacs .netrc authorized_keys .tmux.conf
    .screenrc crontab sitecustomize.py usercustomize.py .pdbrc .pythonrc
    """)
"""Names, without case, that steer wherever they stand."""
FOLDERS = (
    (".git", "hooks"), (".githooks",), (".husky",), (".github", "workflows"), (".github", "actions"),
    (".github", "agents"), (".github", "instructions"), (".github", "prompts"), (".circleci",), (".buildkite",),
    (".woodpecker",), (".gitea",), (".forgejo",), (".cursor",), (".claude",), (".agents",), (".agent",),
    (".codex",), (".gemini",), (".windsurf",), (".roo",), (".clinerules",), (".vscode",), (".idea",), (".zed",),
    (".devcontainer",), (".config", "fish"), (".config", "nvim"), (".config", "systemd"), (".config", "autostart"),
    (".config", "git"), (".ssh",), ("skills",), (".skills",), ("etc", "profile.d"), ("etc", "cron.d"),
    ("etc", "cron.daily"), ("etc", "cron.hourly"), ("etc", "systemd"), ("etc", "sudoers.d"), ("etc", "ssh"),
)  # fmt: skip
"""Folders below which everything steers."""
PLACES = (
    (".git", "config"), (".git", "info", "attributes"), ("etc", "profile"), ("etc", "bash.bashrc"),
    ("etc", "zshrc"), ("etc", "crontab"), ("etc", "sudoers"), ("etc", "ld.so.preload"), ("etc", "environment"),
    ("etc", "passwd"), ("etc", "shadow"),
)  # fmt: skip
OWN_FILES = frozenset({"nightshift.toml", "admin-token.secret", "stack.json"})
OWN_FOLDERS = (".nightshift",)
"""The service's own: no tool writes it, whoever allows it."""
_AGENTS, _TEXTS = frozenset({"agents", "profiles"}), (".toml", ".md", ".yaml", ".yml", ".json")
"""What stands so in such a folder says how an agent behaves."""
_HOLDERS = frozenset({".git", ".github", ".config"})
"""Folders that are not all steering, and that take what is along when they are moved or removed."""


_ONE = frozenset(folder[0] for folder in FOLDERS if len(folder) == 1)
_TWO = frozenset(folder for folder in FOLDERS if len(folder) == 2)


def folded(name: str) -> str:
    return name.casefold() if name.isascii() else unicodedata.normalize("NFKC", name).casefold()


def steers(parts: Sequence[str]) -> bool:
    """Whether what is written at this path steers. A name may hold marks: then whether it may."""
    if not parts:
        return False
    names = tuple(folded(part) for part in parts)
    if any(_marked(name) for name in names):
        return _may_steer(names)
    last = names[-1]
    return (
        last in FILES
        or (len(names) > 1 and names[-2] in _AGENTS and last.endswith(_TEXTS))
        or not _ONE.isdisjoint(names)
        or any(pair in _TWO for pair in pairwise(names))
        or any(names[-len(place) :] == place for place in PLACES)
    )


def _may_steer(names: Sequence[str]) -> bool:
    """Of names that are not wholly known, whether they may be such a path."""
    if _is_any(names[-1], FILES):
        return True
    for at in range(len(names)):
        if any(_same(names[at : at + len(folder)], folder) for folder in FOLDERS):
            return True
        if any(_same(names[at:], place) for place in PLACES):
            return True
    return False


def holds_steering(parts: Sequence[str]) -> bool:
    """Whether a folder so named, moved or removed whole, takes steering files along."""
    return steers(parts) or (bool(parts) and folded(parts[-1]) in _HOLDERS)


def own(parts: Sequence[str]) -> bool:
    """Whether it is the service's own configuration or state."""
    names = [folded(part) for part in parts]
    return bool(names) and (_is_any(names[-1], OWN_FILES) or any(_is_any(name, OWN_FOLDERS) for name in names))


def mounts(names: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Of these paths, each as its parts, those that a sandbox mounts read-only: the outermost that steer."""
    found: list[tuple[str, ...]] = []
    for parts in sorted(map(tuple, names), key=len):
        above = any(parts[: len(one)] == one for one in found)
        if not above and (steers(parts) or own(parts)):
            found.append(parts)
    return found


def _same(names: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(names) == len(wanted) and all(_is_any(name, (word,)) for name, word in zip(names, wanted, strict=True))


def _is_any(name: str, wanted: Iterable[str]) -> bool:
    """A name that is wholly unknown is none of them: of it nothing is known, and that is said elsewhere."""
    if not name.strip(UNKNOWN):
        return False
    if not _marked(name):
        return name in wanted
    return any(could_be(name, word) for word in wanted)


def _marked(name: str) -> bool:
    return UNKNOWN in name or STAR in name or ONE in name

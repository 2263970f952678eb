"""Which files of a workspace steer later behaviour, for the wall."""

from __future__ import annotations

_FILES = frozenset({"agents.md", "claude.md", ".cursorrules", "soul.md", ".bashrc", ".profile", ".zshrc"})


def steers(parts: tuple[str, ...]) -> bool:
    """Whether the file `parts` below a workspace, or a folder, is one of them."""
    folded = [part.casefold() for part in parts]
    return folded[-1] in _FILES or (".git" in folded[:-2] and folded[-2] == "hooks")

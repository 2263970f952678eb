"""Paths of the host that a person names: an admin's to give, absolute, and outside what the stack keeps for itself."""

from __future__ import annotations

import os
from pathlib import Path

from api.auth import Caller, allow
from api.problems import invalid
from shared.values import Role

_OWN: dict[str, str | None] = {"folder": None, "workspace": "workspaces", "deliver_file": "briefs"}
"""The fields, and the folder of the home below which each may lie all the same: that one is made to be used so."""


def check(caller: Caller, home: Path, field: str, named: str | None) -> None:
    """Raises Refused `role_insufficient`, `input_invalid`, `path_in_home`. Each names a folder, which need not be there
    yet. Looks at the disk, which may be a mount that hangs: never call it inside a transaction."""
    if named is None:
        return
    path = Path(named)
    allow(caller, Role.ADMIN)  # what may be read and written on the host is not a member's to say
    if not path.is_absolute() or ".." in path.parts:
        raise invalid(field, "must be an absolute path without '..'")
    kept = Path(os.path.realpath(home))
    own = _OWN[field]
    real = Path(os.path.realpath(path))
    if real.is_relative_to(kept) and not (own is not None and real.is_relative_to(kept / own)):
        fault = "lies in the stack's own home, which holds its keys and its database: name a folder outside"
        raise invalid(field, fault, code="path_in_home")
    if real.exists() and not real.is_dir():
        raise invalid(field, "is a file: name a folder")


def check_all(caller: Caller, home: Path, **fields: str | None) -> None:
    """`check` for each field by its name."""
    for field, named in fields.items():
        check(caller, home, field, named)

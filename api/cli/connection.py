"""Owns where the API is: NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN, else the running local stack's `stack.json`."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from api.cli.exits import Exit, Stop
from shared.errors import SettingsError

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    token: str
    source: str  # for messages: where url and token were found
    is_rehearsal: bool = False  # as far as the local stack says so


def home() -> Path:
    """The stack's home: NIGHTSHIFT_HOME, else `.nightshift` here, else `.nightshift` of the checkout."""
    named = os.environ.get("NIGHTSHIFT_HOME")
    if named:
        return Path(named).expanduser().absolute()
    here = Path.cwd() / ".nightshift"
    return here if (here / "stack.json").exists() else CHECKOUT / ".nightshift"


def stack() -> dict[str, Any] | None:
    """What `stack.json` of the home says, or None where no stack wrote one. Raises Stop where it cannot be read."""
    path = home() / "stack.json"
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Stop("stack_file_unreadable", f"{path} cannot be read ({error}): start the stack again") from error
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def find() -> Target:
    """Where to send requests. Raises Stop with the mend where nothing says so."""
    url, token = _from_settings()
    _must_be_ours(token)
    if url and not token:
        raise Stop("token_missing", "NIGHTSHIFT_URL is set without NIGHTSHIFT_TOKEN: set both", Exit.WRONG_USE)
    if url:
        return Target(url.rstrip("/"), token, "NIGHTSHIFT_URL")
    local = stack()
    if local is None:
        raise Stop(
            "no_stack",
            f"no stack runs here ({home() / 'stack.json'} is not there): start one with `./dev up`,"
            " or set NIGHTSHIFT_URL and NIGHTSHIFT_TOKEN",
            Exit.WRONG_USE,
        )
    return Target(
        str(local["url"]).rstrip("/"),
        token or str(local["token"]),
        str(home() / "stack.json"),
        is_rehearsal=bool(local.get("rehearsal")),
    )


def _must_be_ours(token: str) -> None:
    """A folder that one merely stands in may be anybody's: its address must not be sent the person's own token, and
    where another user wrote it, not their words either. Raises Stop."""
    path = home() / "stack.json"
    if os.environ.get("NIGHTSHIFT_URL") or os.environ.get("NIGHTSHIFT_HOME") or path.parent.parent == CHECKOUT:
        return
    if token and token == os.environ.get("NIGHTSHIFT_TOKEN"):
        raise Stop(
            "token_for_another",
            f"NIGHTSHIFT_TOKEN is set, but the address is only told by {path.parent}, which came with this folder:"
            " set NIGHTSHIFT_URL too, or NIGHTSHIFT_HOME if that stack is yours",
            Exit.WRONG_USE,
        )
    if path.exists() and path.stat().st_uid != os.geteuid():
        raise Stop(
            "stack_of_another",
            f"{path} was written by another user: set NIGHTSHIFT_HOME to {path.parent} if you trust it",
            Exit.WRONG_USE,
        )


def _from_settings() -> tuple[str, str]:
    named = os.environ.get("NIGHTSHIFT_CONFIG") or (home() / "nightshift.toml").exists()
    if not named:  # the usual case, without the tenth of a second that checking every setting takes
        return os.environ.get("NIGHTSHIFT_URL", ""), os.environ.get("NIGHTSHIFT_TOKEN", "")
    from shared import settings

    try:
        found = settings.load({**os.environ, "NIGHTSHIFT_HOME": str(home())})
    except SettingsError as error:
        raise Stop(error.code, error.message, Exit.WRONG_USE) from error
    return found.url, found.token

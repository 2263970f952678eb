"""Owns how a command ends: its exit code, and the one or two lines that say why. A person never sees a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    PERSON = 3  # parked: a person has to decide or answer
    MONEY = 4  # a cap stands in the way


class Stop(Exception):
    """Ends the command with `exit`; `code` is stable, `message` says what happened and what to do."""

    def __init__(self, code: str, message: str, exit: Exit = Exit.FAILED, *, status: int = 0) -> None:  # noqa: A002
        super().__init__(message)
        self.code = code
        self.message = message
        self.exit = exit
        self.status = status  # of HTTP, 0 where no answer came


def of_code(code: str | None) -> Exit:
    """Money has an exit code of its own, so that a script can ask for more instead of trying again."""
    return Exit.MONEY if code is not None and code.endswith("cap_reached") else Exit.FAILED


def of_turn(turn: Mapping[str, Any]) -> Exit | None:
    """How a command that waits for this turn ends, or None while waiting is worth it."""
    status = turn.get("status")
    if status == "done":
        return Exit.DONE
    if status == "failed":
        return of_code(error_code(turn))
    if status == "cancelled":
        return Exit.FAILED
    if status != "parked":
        return None
    if turn.get("parked_on") == "children":  # as long as nobody below it waits for a person
        waiting: Mapping[str, Any] = turn.get("waiting") or {}
        return Exit.PERSON if waiting.get("approvals") or waiting.get("questions") else None
    return {"approval": Exit.PERSON, "clarify": Exit.PERSON, "money": Exit.MONEY}.get(str(turn.get("parked_on")))


def error_code(turn: Mapping[str, Any]) -> str | None:
    """The stable code of a failed turn."""
    error: Mapping[str, Any] = turn.get("error") or {}
    return error.get("code")


def error_text(turn: Mapping[str, Any]) -> str:
    error: Mapping[str, Any] = turn.get("error") or {}
    return str(error.get("message") or "")

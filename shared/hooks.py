"""What code of others may say before and after a tool call: no, or nothing. Their packages import this and no more.

A package offers a hook as an entry point of the group `nightshift.hooks`; it is used where the setting `hooks` names
it. It is an object with `before`, `after` or both, and `guard` where a failure of its own must deny:

    class NoFridays:
        guard = True

        def before(self, call: Call) -> Deny | None:
            return Deny("not on a Friday") if call.tool == "terminal" and friday() else None

It runs in the worker, in a thread, for at most two seconds a call. It can deny; there is no word by which it could
approve what the gate would ask about. A call that a person must allow is shown to it before that person is asked, and
again right before it runs; one that a person or children answer before anybody is asked and any child is made, and its
answer each time that the answer is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GROUP = "nightshift.hooks"


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. `arguments` are a copy: what is changed in them changes nothing."""

    tool: str
    arguments: Mapping[str, object]
    session: str
    turn: str
    step: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Result:
    """What the model is about to see of it."""

    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Deny:
    """Before: the call is not made. After: it was, and the model does not see what came of it. `why` is for both."""

    why: str

"""Hooks around a call that somebody else answers: asked before anybody is, and of the answer before the model sees it.

Before: once, at the moment where a person would be asked or children would be made. What was asked or made by then is
not denied any more. After: each time that the answer is made of its rows, which may be more than once.
"""

from __future__ import annotations

from dataclasses import replace

from shared.hooks import Call
from shared.values import RunStatus
from workers import hooks
from workers.held import Held
from workers.recording import Run
from workers.tools.context import Arguments, ToolResult
from workers.waiting.state import Answered, answered


def denied(held: Held, run: Run, given: Arguments) -> Answered | None:
    """What the model is told where a hook denies the call: nobody is asked, nothing is made."""
    refused = hooks.standing().before(_call(held, run, given))
    return None if refused is None else answered(run, refused.text, RunStatus.DENIED)


def seen(held: Held, run: Run, given: Arguments, came: Answered) -> Answered:
    """The answer, or that a hook withholds it."""
    finished = came.finished
    result = ToolResult(finished.text, is_error=finished.is_error)
    shown = hooks.standing().after(_call(held, run, given), result)
    if shown is result:
        return came
    return Answered(replace(finished, text=shown.text, is_error=shown.is_error, status=RunStatus.FAILED))


def _call(held: Held, run: Run, given: Arguments) -> Call:
    claim = held.claim
    return Call(run.call.name, given, str(claim.session), str(claim.turn), run.step, run.ordinal)

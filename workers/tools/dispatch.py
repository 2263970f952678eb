"""One tool call, run: whatever the model sent and whatever the tool does, there is a result and nothing is raised but
what says that the turn cannot go on here."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import structlog

from shared.errors import StoreError
from shared.hooks import Call
from shared.redact import REDACTOR
from shared.text import bounded, clean_text
from workers import hooks
from workers.tools import arguments
from workers.tools.context import Came, ToolContext, ToolLost, ToolRefused, ToolResult, ToolStopped, check_going
from workers.tools.registry import TOOLS
from workers.web import foreign

_log = structlog.stdlib.get_logger(__name__)
_MOST_NAME = 64
MOST_CHARS = 32_000_000
"""Of one result, which is in memory once for every slot; the rest of it is left out, and it says so."""


def run_one(context: ToolContext, name: str, arguments_text: str, allowed: Collection[str] | None = None) -> ToolResult:
    """The tool's result, or an error result that says what to do; never tells a path of this host, nor a key. Raises
    nothing but StoreError, of a tool that reads or writes rows: the turn is no longer ours, or the database is away."""
    return _ran(context, name, arguments_text, tuple(TOOLS) if allowed is None else allowed)


def without_keys(result: ToolResult) -> ToolResult:
    """As it may be stored, sent and shown; what cannot be looked through is withheld (shared/redact.py)."""
    cleaned = REDACTOR.clean(result.text)
    note = result.note if result.note is None else REDACTOR.clean(result.note).text
    return replace(result, text=cleaned.text, note=note)


def _ran(context: ToolContext, name: str, arguments_text: str, allowed: Collection[str]) -> ToolResult:
    """Whatever comes of it is looked through for keys once: here, since that costs more than all else here."""
    try:
        tool = TOOLS.get(name) if name in allowed else None
        if tool is None:
            return without_keys(_unknown(name, allowed))
        check_going(context)
        given = arguments.parse(arguments_text, tool.schema) if tool.ours else arguments.read(arguments_text)
        around = hooks.standing()
        call = Call(name, given, context.session, context.turn, context.step, context.ordinal)
        denied = around.before(call)
        if denied is not None:
            return without_keys(denied)
        result = without_keys(fitting(tool.run(context, given)))
        if tool.foreign:
            result = replace(result, text=foreign.marked(result.text))
        shown = around.after(call, result)
        return result if shown is result else without_keys(shown)
    except ToolRefused as refused:
        return _failed(clean_text(refused.message), None)
    except StoreError:
        raise
    except ToolStopped as stopped:
        return _failed(clean_text(stopped.message), Came.STOPPED)
    except ToolLost as lost:
        return _failed(clean_text(lost.message), Came.LOST)
    except Exception as error:  # noqa: BLE001 - a tool's own fault must cost this call alone; its text may hold paths and stays here
        _log.error(
            "tool.failed",
            tool=name[:_MOST_NAME],
            session=context.session,
            turn=context.turn,
            step=context.step,
            ordinal=context.ordinal,
            error=type(error).__name__,
            at=where(error),
        )
        return _failed(f"the tool failed ({type(error).__name__}); this is a fault of the tool", Came.STOPPED)


def _failed(words: str, came: Came | None) -> ToolResult:
    made = ToolResult(words, is_error=True)
    return without_keys(made if came is None else replace(made, came=came))


def where(error: Exception) -> str:
    """File and line that raised: enough to find a fault, and without the message, which may quote what was read."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def fitting(result: ToolResult) -> ToolResult:
    """The result with a text that can be stored. What is longer than the tool's own bound is kept (workers/spill.py);
    only what no tool should give is cut."""
    return replace(result, text=bounded(clean_text(result.text), MOST_CHARS))


def _unknown(name: str, allowed: Collection[str]) -> ToolResult:
    if not name.strip():
        return ToolResult("the call names no tool", is_error=True, came=Came.STOPPED)
    shown = clean_text(name[:_MOST_NAME])
    near = difflib.get_close_matches(shown.casefold(), list(allowed), n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(allowed)}"
    return ToolResult(f"there is no tool {shown!r}{hint}", is_error=True, came=Came.STOPPED)

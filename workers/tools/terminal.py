"""The tool `terminal`: a command of the model's in the sandbox, waited for or left running in the background.

`Repeat.ONCE`: nobody can say what a command does, so none is ever run a second time by itself.
"""

from __future__ import annotations

from psycopg.rows import DictRow

from shared import effects
from shared.values import Repeat
from workers.sandbox import boxed, standing, wall
from workers.sandbox.background import BACKGROUNDS, Process
from workers.sandbox.output import shown
from workers.sandbox.told import ending, told
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, ToolStopped, store_of
from workers.tools.tool import Tool, flag, integer, text

_CAP = 50_000
MOST_S = 300
MOST_BACKGROUND_S = 3600
_DEFAULT_S = 120
_MOST_COMMAND = 60_000
_MOST_POLLED = 20_000
_ENDS_S = 10.0


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """A command was run to its end, or begun; or what a begun one wrote since, or that it was ended."""
    command, name = text(arguments, "command", ""), text(arguments, "process", "")
    if bool(command.strip()) is bool(name):
        raise ToolRefused("give a command to run, or the process of an earlier one to ask for; not both")
    if name:
        return _ask(context, name, integer(arguments, "offset", 0), kill=flag(arguments, "kill"))
    if "\x00" in command or len(command.encode()) > _MOST_COMMAND:
        raise ToolRefused(f"a command has at most {_MOST_COMMAND:,} bytes and no NUL; put a long one into a file")
    asked = integer(arguments, "timeout_s", 0)
    if flag(arguments, "background"):
        return _begin(context, command, float(min(asked or MOST_BACKGROUND_S, MOST_BACKGROUND_S)))
    seconds = min(asked or _DEFAULT_S, MOST_S)
    ended, output = boxed.run(context, wall.way(), _wanted(command, float(seconds)))
    return told(ended, output.text(), seconds)


def _wanted(command: str, seconds: float) -> boxed.Wanted:
    return boxed.Wanted(("/bin/bash", "-c", command), seconds)


def _begin(context: ToolContext, command: str, seconds: float) -> ToolResult:
    store = store_of(context)
    database = store.database  # by itself: who asks for as long as the process lives must not keep this turn's store
    name = f"p{context.step}.{context.ordinal}"
    boot = standing.begin(store, name, seconds + boxed.GRACE_S)
    BACKGROUNDS.watched(lambda turns: standing.going_on(database, turns, boot))
    try:
        BACKGROUNDS.begin(context, wall.way(), _wanted(command, seconds), name)
    except (ToolRefused, ToolStopped):
        standing.settle(store, name, "ended", "it was not begun")
        raise
    return ToolResult(
        f"begun as process {name}, for at most {seconds:g} s and no longer than this turn; ask for it by process"
    )


def _ask(context: ToolContext, name: str, offset: int, *, kill: bool) -> ToolResult:
    process = BACKGROUNDS.find(context.turn, name)
    if process is None:
        return _elsewhere(context, name)
    if kill:
        process.stop.set()
        if not process.over.wait(_ENDS_S):
            return ToolResult("it was told to end and has not yet; ask again", is_error=True)
    return _standing(context, process, max(0, offset))


def _standing(context: ToolContext, process: Process, offset: int) -> ToolResult:
    over = process.over.is_set()  # asked before the output is read: what comes after this is read by the next
    begin, data = process.ring.read(offset, _MOST_POLLED)
    lines = [shown(data)] if data else []
    end = begin + len(data)
    left_out = f", bytes before {begin:,} are gone" if begin > offset else ""
    more = f", {process.ring.end - end:,} bytes more" if end < process.ring.end else ""
    if not over:
        return ToolResult("\n".join([*lines, f"[running · next offset {end}{left_out}{more}]"]))
    said = process.lost or (ending(process.ended, None) if process.ended is not None else "it ended")
    standing.settle(store_of(context), process.name, "ended", said.partition("\n")[0][:200])
    return ToolResult("\n".join([*lines, f"[over: {said} · next offset {end}{left_out}{more}]"]))


def _elsewhere(context: ToolContext, name: str) -> ToolResult:
    """What can be said of a process that this worker does not have: where it was, and until when it may run."""
    store = store_of(context)
    row = standing.find(store, name)
    if row is None:
        raise ToolRefused(f"this turn has no process {name!r}; the answer that began one names it")
    if row["status"] == "ended":
        return ToolResult(f"[over: {row['ending']}; its output is gone with the worker that had it]")
    if row["status"] == "running":
        standing.settle(store, name, "unknown", "its worker does not have the turn any more")
    return ToolResult(_unknown(row), is_error=True)


def _unknown(row: DictRow) -> str:
    until = row["may_run_until"] if row["may_run"] else None
    if until is None:
        return (
            f"outcome unknown: it ran on another worker (host {row['host']}), which does not have this turn any more, "
            "and its time is over; look at what it would have changed"
        )
    where = f"it was begun on host {row['host']} by a worker that does not have this turn any more"
    return effects.unknown(until, why=where, look="look at what it would have changed")


TOOL = Tool(
    name="terminal",
    description=(
        "Run a bash command in a sandbox: your workspace is writable, input/ read-only, no network, nothing else of "
        "the host. Each call is a fresh shell in the workspace; files stay. What takes longer than timeout_s (at most "
        "300) is run with background: ask for its output by process and offset, or kill it; it ends with this turn."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout_s": {"type": "integer", "minimum": 1, "maximum": MOST_BACKGROUND_S},
            "background": {"type": "boolean"},
            "process": {"type": "string", "maxLength": 40},
            "offset": {"type": "integer", "minimum": 0},
            "kill": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
    repeat=Repeat.ONCE,
    run=run,
    cap_chars=_CAP,
    foreign=True,
    look="look at what the command would have changed",
    run_s=MOST_S + 2 * boxed.GRACE_S,
    lacks=wall.lacks,
)

"""The tool `memory`: what is to be known in later conversations, of the team or of the person.

`Repeat.KEYED`: a revision names the run that made it, once; a run that is repeated after a crash finds its own and
answers with it. The prompt of this conversation stays as it is: what was changed is told here, in the result.
"""

from __future__ import annotations

from shared import memory
from shared.errors import LeaseLost, Refused
from shared.memory import Action, Change, Head, MemoryChanged
from shared.store import memories
from shared.store.memories import Run, Written
from shared.store.pool import Connection
from shared.store.statements import one, step
from shared.values import Repeat
from workers.prompt import remembered
from workers.tools.context import Arguments, Store, ToolContext, ToolRefused, ToolResult, check_acting, store_of
from workers.tools.tool import Tool, integer, text
from workers.tools.touching import Thing, Touch

READ = "read"
_ACTIONS = (Action.ADD, Action.REPLACE, Action.REMOVE)
_SCOPES = ("team", "me")
_MOST_TEXT = 50_000


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """What is there, or what was changed and what is there now. A refusal says why and shows what is there."""
    action, called = text(arguments, "action", ""), text(arguments, "scope", "")
    if called not in _SCOPES:
        raise ToolRefused(f"scope must be one of {', '.join(_SCOPES)}")
    if action not in (READ, *_ACTIONS):
        raise ToolRefused(f"action must be one of {READ}, {', '.join(_ACTIONS)}")
    store = store_of(context)
    try:
        if action == READ:
            head = store.database.read(lambda c: memories.read_by_run(c, store.session, called))
            return ToolResult(_state(store, head))
        asked = _change(Action(action), arguments)
        check_acting(context)
        return ToolResult(_told(store, _write(store, context, called, asked)))
    except MemoryChanged as stale:
        raise ToolRefused(f"{stale.message}\n{_state(store, stale.head)}") from stale
    except Refused as refused:
        if isinstance(refused, ToolRefused) or refused.code not in ("memory_full", "memory_entry_unknown"):
            raise ToolRefused(refused.message) from refused
        head = store.database.read(lambda c: memories.read_by_run(c, store.session, called))
        raise ToolRefused(f"{refused.message}\n{_state(store, head)}") from refused


def _change(action: Action, arguments: Arguments) -> Change:
    old = text(arguments, "old", "")
    if action is not Action.ADD and not old.strip():
        raise ToolRefused(f"{action} needs old: the entry, or a part that only it has")
    seen = integer(arguments, "revision", -1)
    return Change(action, text(arguments, "text", ""), old, None if seen < 0 else seen)


def _write(store: Store, context: ToolContext, called: str, asked: Change) -> Written:
    place = Run(store.session, store.turn, context.step, context.ordinal, store.fence)

    def work(connection: Connection) -> Written:
        return memories.change_by_run(
            connection, place, called, asked, lambda kind: memory.limit(store.settings, kind),
            from_jobs=store.settings.memory_from_jobs,
        )  # fmt: skip

    def recover(connection: Connection) -> Written | None:
        row = one(connection, step.HOLD, {"session": store.session})
        if row is None or row["fence"] != store.fence:
            raise LeaseLost
        return memories.done_by(connection, place)

    return store.database.write(work, recover=recover)


def _told(store: Store, written: Written) -> str:
    head = written.head
    if not written.changed:
        return f"it is there already, nothing was changed; {_size(store, head)}"
    return (
        f"done; {_size(store, head)}. Conversations that begin from now on have it in their prompt; in this one it is "
        "known from here."
    )


def _state(store: Store, head: Head) -> str:
    shown, _ = remembered.listed(head, memory.limit(store.settings, head.scope.kind))
    return f"{_size(store, head)}\n{shown}"


def _size(store: Store, head: Head) -> str:
    most = memory.limit(store.settings, head.scope.kind)
    return (
        f"{head.scope.called} memory is at revision {head.revision}, {memory.size(head.entries):,} of {most:,} "
        "characters"
    )


def _touches(arguments: Arguments) -> Touch | None:
    """A change is a row of this turn's, and only one thread writes those: it runs alone."""
    return Touch(reads=(Thing("memory"),)) if text(arguments, "action", "") == READ else None


TOOL = Tool(
    name="memory",
    description=(
        "What is known in later conversations, of the team or of the person (me): short entries that stay true, not "
        "what the work of today is. replace and remove name an entry by old, its text or a part that only it has, and "
        "the revision that you know; where others changed it meanwhile you are shown what is there now."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["read", "add", "replace", "remove"]},
            "scope": {"type": "string", "enum": list(_SCOPES)},
            "text": {"type": "string", "maxLength": _MOST_TEXT},
            "old": {"type": "string", "maxLength": _MOST_TEXT},
            "revision": {"type": "integer", "minimum": 0},
        },
        "required": ["action", "scope"],
        "additionalProperties": False,
    },
    repeat=Repeat.KEYED,
    run=run,
    cap_chars=120_000,
    touches=_touches,
)

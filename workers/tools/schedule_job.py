"""The tool `schedule_job`: what runs by the clock for the person who asked, and answers into this conversation.

`Repeat.KEYED`: a job has the run's key as its id, so a run that is repeated, like a write whose reply was lost, finds
the job that it made. Only a person's
turn makes or removes one: what runs by itself schedules nothing.
"""

from __future__ import annotations

from uuid import UUID

from shared.errors import LeaseLost, Refused
from shared.store import outward
from shared.store.outward import NewJob, Place
from shared.text import clean_text
from shared.values import Repeat
from workers.tools import shown
from workers.tools.context import Arguments, ToolContext, ToolRefused, ToolResult, check_acting, store_of
from workers.tools.tool import Tool, text

_CAP = 20_000
_MOST_NAME = 100
_MOST_PROMPT = 20_000
_SHOWN = 200


def run(context: ToolContext, arguments: Arguments) -> ToolResult:
    """What was made or removed, and when a job comes due; or one line a job."""
    store = store_of(context)
    place = Place(store.session, store.turn, store.fence)
    action = text(arguments, "action", "")
    try:
        match action:
            case "list":
                return ToolResult(_listed(store.database.read(lambda c: outward.jobs(c, place))))
            case "add":
                new = _new(context, arguments)
                check_acting(context)
                due = store.database.write(lambda c: outward.add_job(c, place, new), recover=None)
                return ToolResult(f"scheduled: {new.name} ({new.cron}, {new.zone}), first at {due:%Y-%m-%d %H:%M} UTC")
            case "remove":
                name = _name(arguments)
                check_acting(context)
                store.database.write(lambda c: outward.remove_job(c, place, name) or True, recover=None)
                return ToolResult(f"removed: {name}; its runs stay")
            case _:
                raise ToolRefused("action must be one of list, add, remove")
    except LeaseLost:
        raise
    except Refused as refused:
        raise ToolRefused(refused.message) from refused


def _new(context: ToolContext, arguments: Arguments) -> NewJob:
    settings = store_of(context).settings
    prompt = clean_text(text(arguments, "prompt", "")).strip()
    if not prompt:
        raise ToolRefused("prompt is missing: say what is to be done, for one who knows nothing of this conversation")
    zone = text(arguments, "zone", settings.team_zone)
    return NewJob(
        UUID(context.key), _name(arguments), text(arguments, "cron", ""), zone, prompt, settings.job_deadline_s
    )  # fmt: skip


def _name(arguments: Arguments) -> str:
    name = " ".join(clean_text(text(arguments, "name", "")).split())
    if not name:
        raise ToolRefused("name is missing: a few words by which people know the job")
    return name


def _listed(rows: list[dict[str, object]]) -> str:
    return "\n".join(_line(row) for row in rows) or "[there are no jobs]"


def _line(row: dict[str, object]) -> str:
    state = "paused" if row["paused_at"] is not None else f"next {row['next_at'] or 'never'} UTC"
    whose = "" if row["mine"] else ", somebody else's"
    line = f"{row['name']}: {row['cron']} {row['zone']}, {state}{whose}: {str(row['prompt'])[:_SHOWN]}"
    return shown.name([line])


TOOL = Tool(
    name="schedule_job",
    description=(
        "Jobs that run by the clock (five cron fields) and answer into this conversation. Only where a person asks for "
        "it. prompt is all that a run knows."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "add", "remove"]},
            "name": {"type": "string", "maxLength": _MOST_NAME},
            "cron": {"type": "string", "maxLength": 200},
            "zone": {"type": "string", "maxLength": 64, "description": "IANA; default the team's"},
            "prompt": {"type": "string", "maxLength": _MOST_PROMPT},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    repeat=Repeat.KEYED,
    run=run,
    cap_chars=_CAP,
)

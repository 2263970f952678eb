"""The tool `delegate_task`: pieces of work for agents of their own. No worker is held: the turn parks."""

from __future__ import annotations

from shared.values import Repeat
from workers.tools.tool import Tool, Waits, never_runs

MOST_TASKS = 20
MOST_CHARS = 20_000

TOOL = Tool(
    name="delegate_task",
    description=(
        "Give pieces of work to agents of their own, which run side by side. Each knows nothing but the goal and the"
        " context you write, works in a folder of its own under children/ (you can read it), and reports in one"
        " summary. A summary is what that agent says of itself: check what matters before you rely on it. With"
        " background the call returns at once and the summaries come to this conversation when they are there."
    ),
    schema={
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": MOST_TASKS,
                "items": {
                    "type": "object",
                    "properties": {
                        "goal": {"type": "string", "minLength": 1, "maxLength": MOST_CHARS},
                        "context": {"type": "string", "maxLength": MOST_CHARS},
                        "tools": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 64}},
                    },
                    "required": ["goal"],
                    "additionalProperties": False,
                },
            },
            "background": {"type": "boolean"},
        },
        "required": ["tasks"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,  # its children are rows: asked for again, they are found
    run=never_runs,
    cap_chars=200_000,
    waits=Waits.CHILDREN,
)

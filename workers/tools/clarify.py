"""The tool `clarify`: a question to whoever asked for the turn. No worker is held: the turn parks until then."""

from __future__ import annotations

from shared.values import Repeat
from workers.tools.tool import Tool, Waits, never_runs

MOST_CHARS = 4000

TOOL = Tool(
    name="clarify",
    description=(
        "Ask the person one question and wait for the answer, which may take hours. Only where the answer changes what"
        " you do and nothing in the material tells it; otherwise take the likeliest reading and say which you took."
    ),
    schema={
        "type": "object",
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": MOST_CHARS}},
        "required": ["question"],
        "additionalProperties": False,
    },
    repeat=Repeat.REPEATABLE,
    run=never_runs,
    cap_chars=40_000,
    waits=Waits.PERSON,
)

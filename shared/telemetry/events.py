"""The events, as values. A field is an id, a number, a truth or one of a closed set: a text fits in none of them.

What a person said, what a model answered, names that people gave, addresses and messages of errors are content; they
are in the rows, for those who may read them. A test looks at every field of every event.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from shared.mcp import PREFIX
from shared.values import CallStatus, Purpose, RunStatus, TurnClass, TurnStatus


class ToolName(StrEnum):
    """The tools of this house by name; all of tool servers are one, and so are all that nobody knows."""

    CLARIFY = "clarify"
    DELEGATE_TASK = "delegate_task"
    GIT_LOG = "git_log"
    LIST_FILES = "list_files"
    MEMORY = "memory"
    PATCH = "patch"
    READ_ARTIFACT = "read_artifact"
    READ_FILE = "read_file"
    RUN_CODE = "run_code"
    SCHEDULE_JOB = "schedule_job"
    SEARCH_FILES = "search_files"
    SEND_MESSAGE = "send_message"
    SESSION_SEARCH = "session_search"
    SKILLS = "skills"
    TERMINAL = "terminal"
    TODO = "todo"
    WEB_FETCH = "web_fetch"
    WEB_SEARCH = "web_search"
    WRITE_FILE = "write_file"
    OF_A_SERVER = "mcp"
    OTHER = "other"


_NAMES = {name.value: name for name in ToolName}


def tool_name(called: str) -> ToolName:
    """The word for what a model called: its own spelling of it goes nowhere."""
    return ToolName.OF_A_SERVER if called.startswith(PREFIX) else _NAMES.get(called, ToolName.OTHER)


@dataclass(frozen=True, slots=True)
class ToolRan:
    """A run of a tool is over. `chars` of its result, as the model sees it."""

    session: UUID
    turn: UUID
    step: int
    ordinal: int
    tool: ToolName
    status: RunStatus
    chars: int


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call to the provider is recorded. Tokens are billed ones; dollars None where nobody knows."""

    session: UUID
    turn: UUID
    call: UUID
    step: int
    purpose: Purpose
    status: CallStatus
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    first_token_s: float | None


@dataclass(frozen=True, slots=True)
class TurnLeft:
    """A worker is done with a turn for now: it ended, or it waits. `seconds` since this worker had claimed it."""

    session: UUID
    turn: UUID
    turn_class: TurnClass
    status: TurnStatus
    steps: int
    seconds: float


Event = ToolRan | CallEnded | TurnLeft

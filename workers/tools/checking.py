"""Whether a lost run of a checkable tool happened: its check is asked, and whatever the check does, there is an answer.

A check is a read. One that raises, or does not answer in time, is one that cannot tell: it is left to end by itself.
"""

from __future__ import annotations

import threading

import structlog

from workers.tools import arguments
from workers.tools.context import ToolContext
from workers.tools.dispatch import fitting, where
from workers.tools.tool import CannotTell, Checked, DidNotHappen, Happened, Tool

CHECK_S = 10.0
_LOOK_EVERY_S = 0.05
_log = structlog.stdlib.get_logger(__name__)


def ask(context: ToolContext, tool: Tool, arguments_text: str) -> Checked:
    """What the tool's check says of the run that `context` names, by `context.deadline`. Never raises."""
    check = tool.check
    if check is None:
        return CannotTell("there is no way to check it any more")
    said: list[Checked] = []

    def read() -> None:
        try:
            said.append(check.ask(context, arguments.parse(arguments_text, tool.schema)))
        except Exception as error:  # noqa: BLE001 - whatever a check raises, it says that it cannot tell; its text may hold paths
            _log.error(
                "check.failed", tool=tool.name, check=check.name, turn=context.turn, step=context.step,
                ordinal=context.ordinal, error=type(error).__name__, at=where(error),
            )  # fmt: skip
            said.append(CannotTell(f"{check.name} failed ({type(error).__name__})"))

    thread = threading.Thread(target=read, name="check", daemon=True)
    thread.start()
    while thread.is_alive() and not context.over():
        thread.join(_LOOK_EVERY_S)
    match said[0] if said else None:
        case None:
            _log.error("check.late", tool=tool.name, check=check.name, turn=context.turn)
            return CannotTell(f"{check.name} did not answer in time")
        case Happened(result):
            return Happened(fitting(result))
        case (DidNotHappen() | CannotTell()) as answer:
            return answer

"""How a run that came to its end is told to the model."""

from __future__ import annotations

import signal

from workers.sandbox.boxed import MOST_OUTPUT, Ended
from workers.tools.context import ToolResult

_WHY = {
    "output": f"ended: it wrote more than {MOST_OUTPUT >> 20} MB of output",
    "memory": "ended: its processes used more memory than a run may have",
    "disk": "ended: the workspace came to hold more than it may; remove what is not needed any more",
    "processes": "ended: it began more processes than a run may have",
}


def told(ended: Ended, output: str, seconds: float) -> ToolResult:
    """The output, then one line on the end; an error unless it ended well and nothing of it was taken back."""
    lines = [output.rstrip("\n")] if output.strip() else []
    lines.append(f"[{ending(ended, seconds)}]")
    is_error = ended.code != 0 or ended.why is not None or bool(ended.taken_back or ended.differs)
    return ToolResult("\n".join(lines), is_error=is_error)


def ending(ended: Ended, seconds: float | None) -> str:
    """How it ended, how long it took, behind which wall, and what of it does not stand."""
    limit = "its time was over" if seconds is None else f"it took longer than {seconds:g} s"
    how = f"ended: {limit}" if ended.why == "time" else _WHY.get(ended.why or "", "")
    return "\n".join([f"{how or _code(ended.code)} · {ended.seconds:.1f} s · sandbox: {ended.tier}", *_steering(ended)])


def _code(code: int) -> str:
    number = -code if code < 0 else code - 128
    if code < 0 or code > 128:
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            pass
    return f"exit {code}"


def _steering(ended: Ended) -> list[str]:
    """A file that steers later work needs a person each time, so a command's change of it does not stand."""
    lines: list[str] = []
    if ended.taken_back:
        names = ", ".join(ended.taken_back[:20])
        lines.append(
            f"taken back: {names}. Files that steer later work are changed only by write_file, which a person allows "
            "each time"
        )
    if ended.differs:
        lines.append(f"changed, and not to be put back: {', '.join(ended.differs[:20])}. Tell the person")
    return lines

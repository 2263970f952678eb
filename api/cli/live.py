"""Shows a turn while it works: its text as it comes, tools and troubles as one dim line each.

What a terminal has shown cannot be taken back, so void text is marked as such and the right text follows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from api.cli import safe, screen
from api.cli.events import Seen
from api.cli.fold import Added, Dropped, Other, Voided

ARGUMENTS_WIDTH = 100
WAITS_FOR = {"clarify": "an answer", "time": "a tool run that was lost and may still happen"}
"""What a turn is parked on, where the word itself does not say it to a person."""


class Live:
    """A screen that keeps its lines whole: notes never begin in the middle of streamed text."""

    def __init__(self, write: Callable[[str], None] = screen.write, note: Callable[[str], None] = screen.note) -> None:
        self._write_out = write
        self._note_out = note
        self._at_start = True
        self._step: int | None = None

    def show(self, seen: Seen) -> None:
        match seen.change:
            case Added(step, text):
                self._text(step, text)
            case Voided(_, text):
                self._void(text)
            case Other():
                pass
            case Dropped():
                return
        sentence = describe(seen.event.kind, seen.event.data)
        if sentence:
            self.note(sentence)

    def remark(self, seen: Seen) -> None:
        """What `show` would say beside the text, without the text."""
        sentence = "" if isinstance(seen.change, Dropped) else describe(seen.event.kind, seen.event.data)
        if sentence:
            self.note(sentence)

    def note(self, text: str) -> None:
        self.end_line()
        self._note_out(text)

    def end_line(self) -> None:
        if not self._at_start:
            self._write_out("\n")
            self._at_start = True

    def _text(self, step: int, text: str) -> None:
        if not text:
            return
        if self._step is not None and step != self._step:
            self.end_line()
        self._step = step
        self._write_out(text)
        self._at_start = text.endswith("\n")

    def _void(self, text: str) -> None:
        if not self._at_start or text:
            self.note("~ the text above is void; it is written again")
        if text:
            self._write_out(text)
            self._at_start = text.endswith("\n")


def describe(kind: str, data: Mapping[str, Any]) -> str:
    """One line about an event, or nothing where its text says it all."""
    match kind:
        case "turn.started" if int(data.get("attempt") or 1) > 1:
            return f"↻ another worker took over (attempt {data['attempt']})"
        case "tool.called":
            return f"→ {call(data)}"
        case "tool.finished" if data.get("status") == "unknown":
            return f"? {data.get('tool')} may or may not have happened: its worker was lost"
        case "tool.finished" if data.get("is_error"):
            return f"✗ {data.get('tool')} failed"
        case "turn.parked":
            what = WAITS_FOR.get(str(data.get("reason")), data.get("reason"))
            limit = data.get("wait_s")
            bound = f", at most {screen.duration(limit)}" if isinstance(limit, int | float) else ""
            why = f": {data['why']}" if data.get("why") else ""
            return f"‖ waiting for {what}{bound}{why}"
        case "turn.woken":
            return "▶ goes on"
        case "turn.steered":
            return f"» {data.get('author') or 'steered'}: {data.get('text')}"
        case "turn.stalled":
            return f"… stalled: {data.get('reason')}"
        case "budget.warning":
            of = f" of the {data['of']}'s cap" if data.get("of") else ""
            return f"! {data.get('percent')} % of its {data.get('kind')}{of} is used"
        case "approval.requested":
            return f"? {call(data)} waits for a person's approval"
        case "approval.decided":
            by = f" by {data['decided_by']}" if data.get("decided_by") else ""
            note = f": {data['note']}" if data.get("note") else ""
            mark = "✓" if data.get("decision") == "approved" else "✗"
            return f"{mark} {data.get('tool')} {data.get('decision')}{by}{note}"
        case "clarify.requested":
            return f"? {data.get('question')}"
        case "child.started":
            where = " in the background" if data.get("background") else ""
            return f"⇉ child {_number(data)} begins{where}: {data.get('title')}"
        case "child.finished":
            bill = f"{data.get('steps')} steps · {screen.money(data.get('cost_usd'))}"
            return f"⇇ child {_number(data)} {data.get('status')} · {bill} · {data.get('title')}"
        case "transcript.repaired":
            return f"! the transcript was repaired before sending: {data.get('repairs')}"
        case "prefix.broken":
            return f"! the prompt's prefix broke at block {data.get('block')}"
        case "prompt.left_out":
            where = f"{data.get('source')}, entry {data.get('entry')}"
            return f"! left out of the prompt ({where}): it reads like an instruction {data.get('why')}"
        case _:
            return ""


def _number(data: Mapping[str, Any]) -> int:
    """Of a child within its batch, as the parent counts them."""
    index = data.get("index")
    return index + 1 if isinstance(index, int) else 1


def call(data: Mapping[str, Any], width: int = ARGUMENTS_WIDTH) -> str:
    """`tool(name="value", …)`, shortened."""
    import json

    arguments: Any = data.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return f"{data.get('tool')}({safe.line(arguments, width)})"
    if not isinstance(arguments, dict):
        return f"{data.get('tool')}()"
    inside = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()  # pyright: ignore[reportUnknownVariableType] - JSON
    )
    return f"{data.get('tool')}({safe.line(inside, width)})"


def to_stderr() -> Live:
    """For a caller whose stdout belongs to something else."""

    def write(text: str) -> None:
        sys.stderr.write(safe.text(text))
        sys.stderr.flush()

    return Live(write=write)

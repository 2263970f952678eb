"""Decides, event by event, what a watched turn's viewers get; pure. The invariant: at every id that a client can come
back with, it knows exactly the text that the writer had sent up to that id, and after a snapshot all that is committed.

So nothing is sent while that would not hold: behind a gap (`damaged`), and while committed steps that went out in a
snapshot are still to come in the stream (`ahead`). Both end at a `step.finished`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.stream import Event
from shared.values import EventKind, TurnStatus


@dataclass(frozen=True, slots=True)
class Committed:
    """One committed step: its text, and the fence it was written under."""

    text: str
    fence: int


class Doubt(StrEnum):
    HOLDER = "holder"  # another holder began: did the one before commit what was on the screen?
    STEP = "step"  # a damaged step is committed: its text is to be had now
    END = "end"  # the turn is over, and what was sent may lack something


@dataclass(frozen=True, slots=True)
class Send:
    event: Event


@dataclass(frozen=True, slots=True)
class Drop:
    """Late, repeated, or not to be sent now."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Only Postgres can tell: read the committed steps, then `settle`. `damaged`: text was missing until here."""

    event: Event
    doubt: Doubt
    damaged: bool


Verdict = Send | Drop | Ask
Truth = Mapping[int, Committed]


@dataclass(slots=True)
class Timeline:
    """What is known of a turn from its stream so far. `passed`: the last step whose text cannot come any more."""

    fence: int = -1
    n: int = 0
    passed: int = 0
    texts: dict[int, str] = field(default_factory=dict[int, str])
    open_step: int | None = None
    open_text: list[str] = field(default_factory=list[str])
    damaged: bool = False
    ahead: set[int] = field(default_factory=set[int])
    finished: bool = False

    @property
    def safe(self) -> bool:
        """Whether an event may be sent."""
        return not self.damaged and not self.ahead

    def lacks(self, steps: Iterable[int]) -> bool:
        """Whether one of these committed steps was never sent."""
        return any(step not in self.texts for step in steps)

    def take(self, event: Event) -> Verdict:
        """What to do with the next event of the stream. One that is numbered 0 was told by somebody other than the
        holder: it changes nothing here, and stands where it came."""
        if event.n == 0:
            return Send(event) if self.safe else Drop()
        if event.fence < self.fence or (event.fence == self.fence and event.n <= self.n):
            return Drop()
        if event.fence > self.fence:
            return self._new_holder(event)
        if event.n != self.n + 1:
            self.damaged = True
        self.n = event.n
        return self.judge(event)

    def _new_holder(self, event: Event) -> Verdict:
        """A fence that rises ends what the holder before had begun: either it was committed, or its text is void."""
        was_damaged = self.damaged
        self.fence, self.n = event.fence, event.n
        self.damaged = event.n != 1
        if self.damaged:  # the snapshot at the end of this step settles the past as well
            self.close()
            return self.judge(event)
        if was_damaged or self.open_step is not None or event.step > self.passed + 1:
            return Ask(event, Doubt.HOLDER, was_damaged)
        return self.judge(event)

    def judge(self, event: Event) -> Verdict:
        """The verdict on an event in its place, also on one that had to wait for `settle`."""
        self.passed = max(self.passed, event.step - 1)
        self.ahead = {step for step in self.ahead if step >= event.step}
        match event.kind:
            case EventKind.TURN_FINISHED:
                return self._end(event)
            case EventKind.STEP_FINISHED:
                return self._step_finished(event)
            case _ if not self.safe:
                return Drop()
            case EventKind.TEXT_DELTA:
                if self.open_step != event.step:
                    self.close()
                    self.open_step = event.step
                self.open_text.append(str(event.data.get("text") or ""))
            case EventKind.STEP_RESTARTED:
                self.close()
            case _:
                pass
        return Send(event)

    def _step_finished(self, event: Event) -> Verdict:
        self.passed = max(self.passed, event.step)
        self.ahead.discard(event.step)
        if self.damaged:
            self.damaged = False
            self.close()
            return Ask(event, Doubt.STEP, damaged=True)
        if self.ahead:
            return Drop()
        text = event.data.get("text")
        sent = "".join(self.open_text) if self.open_step == event.step else ""
        self.texts.setdefault(event.step, text if isinstance(text, str) else sent)
        self.close()
        return Send(event)

    def _end(self, event: Event) -> Verdict:
        self.finished = True
        answer = event.data.get("answer")
        differs = event.data.get("status") == TurnStatus.DONE and isinstance(answer, str) and answer != self.last_text
        if self.safe and not differs:
            return Send(event)
        was_damaged = self.damaged
        self.damaged = False
        self.ahead = set()
        return Ask(event, Doubt.END, was_damaged)

    @property
    def last_text(self) -> str:
        """The text of the last step that has any: the answer, once the turn is done."""
        return next((text for _, text in sorted(self.texts.items(), reverse=True) if text), "")

    def settle(self, truth: Truth, *, before: bool = False) -> bool:
        """Take the committed steps as Postgres has them. True where something is known now that was never sent.

        With `before` only what earlier holders committed counts: the present one's steps are still to come.
        """
        known = {step: one for step, one in truth.items() if not before or one.fence < self.fence}
        new = {step for step in known if step not in self.texts}
        for step, one in known.items():
            self.texts[step] = one.text
            if self._still_to_come(step, one):
                self.ahead |= {step} & new
            else:
                self.passed = max(self.passed, step)
        if self.open_step in self.texts:
            self.close()
        return bool(new)

    def _still_to_come(self, step: int, one: Committed) -> bool:
        """Its events may yet be read from the stream. Those of an earlier holder would be late."""
        return not self.finished and one.fence >= self.fence and step > self.passed

    def close(self) -> int | None:
        """The step under way has no text on the screen from here on. Returns it."""
        step, self.open_step, self.open_text = self.open_step, None, []
        return step

    def steps(self) -> list[dict[str, Any]]:
        """The text of each step as sent, the one under way last."""
        found: list[dict[str, Any]] = [
            {"step": step, "text": text, "committed": True} for step, text in sorted(self.texts.items())
        ]
        if self.open_step is not None:
            found.append({"step": self.open_step, "text": "".join(self.open_text), "committed": False})
        return found

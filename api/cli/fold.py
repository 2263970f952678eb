"""Folds a turn's events into its text, pure. The text that a reader ends with equals the answer, whatever died.

An event's id is `<step>.<fence>.<n>`: what stands below the highest fence seen, or repeats an `n` of that fence, is
dropped. `snapshot` replaces everything; `step.restarted` voids its step; `step.finished` carries the
committed text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """What is known of a turn after some events. `steps` holds (step, text) in order."""

    fence: int = -1
    n: int = 0
    last_id: str | None = None
    steps: tuple[tuple[int, str], ...] = ()
    status: str | None = None
    answer: str | None = None
    error: Any = None

    @property
    def text(self) -> str:
        """The text of the last step that has any: the answer, once the turn is done."""
        if self.answer is not None:
            return self.answer
        return next((text for _, text in reversed(self.steps) if text), "")

    def step_text(self, step: int) -> str:
        return next((text for number, text in self.steps if number == step), "")


@dataclass(frozen=True, slots=True)
class Added:
    """`text` goes behind what that step has so far."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Voided:
    """What was shown of that step is void; `text` stands instead (empty: nothing yet)."""

    step: int
    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """An event that changes no text."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A late or repeated event: show nothing."""


Change = Added | Voided | Other | Dropped


def parse_id(text: str) -> tuple[int, int, int] | None:
    """(step, fence, n), or None where the id is not one of a writer's."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def fold(state: Folded, event: Event) -> tuple[Folded, Change]:
    """The state after `event`, and what a screen has to change."""
    position = parse_id(event.id)
    if position is not None:
        _, fence, n = position
        # No writer numbers an event 0: the API made it, and it repeats nothing. A snapshot begins anew where it stands.
        repeated = fence == state.fence and 0 < n <= state.n and event.kind != "snapshot"
        if fence < state.fence or repeated:
            return state, Dropped()
        keeps_place = fence == state.fence and n == 0 and event.kind != "snapshot"
        state = replace(state, fence=fence, n=state.n if keeps_place else n)
    state = replace(state, last_id=event.id or state.last_id)
    return _apply(state, event.kind, event.data)


def _apply(state: Folded, kind: str, data: Mapping[str, Any]) -> tuple[Folded, Change]:
    step = _number(data.get("step"))
    match kind:
        case "text.delta":
            text = str(data.get("text") or "")
            return _with(state, step, state.step_text(step) + text), Added(step, text)
        case "step.restarted":
            return _with(state, step, ""), Voided(step, "")
        case "step.finished" if isinstance(data.get("text"), str):
            return _settle(state, step, str(data["text"]))
        case "snapshot":
            return _replace_all(state, data)
        case "turn.finished":
            answer = data.get("answer")
            state = replace(state, status=str(data.get("status")), error=data.get("error"))
            return _close(state, answer if isinstance(answer, str) else None)
        case _:
            return state, Other()


def _settle(state: Folded, step: int, text: str) -> tuple[Folded, Change]:
    shown = state.step_text(step)
    change = Added(step, text[len(shown) :]) if text.startswith(shown) else Voided(step, text)
    return _with(state, step, text), change


def _replace_all(state: Folded, data: Mapping[str, Any]) -> tuple[Folded, Change]:
    raw = cast("list[Mapping[str, Any]]", data.get("steps") or [])
    steps = tuple((_number(item.get("step")), str(item.get("text") or "")) for item in raw)
    before, after = state.text, replace(state, steps=steps)
    if after.text == before:
        return after, Other()
    last = next((number for number, text in reversed(steps) if text), 0)
    return after, Voided(last, after.text)


def _close(state: Folded, answer: str | None) -> tuple[Folded, Change]:
    if answer is None:
        return state, Other()
    last = state.steps[-1][0] if state.steps else 0
    shown = state.text
    closed = replace(state, answer=answer)
    if answer == shown:
        return closed, Other()
    return closed, Added(last, answer[len(shown) :]) if answer.startswith(shown) else Voided(last, answer)


def _with(state: Folded, step: int, text: str) -> Folded:
    others = tuple(item for item in state.steps if item[0] != step)
    return replace(state, steps=tuple(sorted((*others, (step, text)))))


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

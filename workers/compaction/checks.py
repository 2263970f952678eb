"""Whether what the summariser gave back may stand for a conversation. Pure; each refusal is a function of its own.

A summary is written once and believed for the rest of the session, so a doubtful one is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.request import blocks, estimate
from workers.compaction import instruction
from workers.providers.replies import Reply

TOLERANCE = 1.5
"""So many times its budget a summary may have: a model counts its words badly, and the room is there."""
_WINDOW = 240
_LOOKS = 200


@dataclass(frozen=True, slots=True)
class Given:
    """A reply, and what it is held against: the budget and the middle in tokens, the texts of the request that it
    answers."""

    reply: Reply
    budget: int
    middle_tokens: int
    model: str
    sent: Sequence[str]

    @property
    def text(self) -> str:
        return self.reply.text.strip()


def refuse(given: Given) -> str | None:
    """Why the reply is no summary, as a code; None where it is one."""
    return next((name for name, is_so in CHECKS.items() if is_so(given)), None)


def calls_a_tool(given: Given) -> bool:
    """It went on working instead. The call is not run: nobody asked for it."""
    return bool(given.reply.tool_calls)


def says_nothing(given: Given) -> bool:
    return not given.text


def declines(given: Given) -> bool:
    return given.reply.refusal is not None or given.reply.stop_reason == "refusal"


def breaks_off(given: Given) -> bool:
    """Its end, where the facts stand, is missing."""
    return given.reply.stop_reason in ("max_tokens", "model_context_window_exceeded")


def is_too_long(given: Given) -> bool:
    return estimate.estimate_text(given.text, given.model) > given.budget * TOLERANCE


def saves_nothing(given: Given) -> bool:
    return estimate.estimate_text(given.text, given.model) >= given.middle_tokens


def gives_the_prompt_back(given: Given) -> bool:
    """More than half of it stands in the request, in long runs of the same characters; or it repeats the
    instruction."""
    if instruction.OPENING in given.text:
        return True
    sent = "\n".join(given.sent)
    last = len(given.text) - _WINDOW
    if last < 0:
        return False
    stride = max(1, last // _LOOKS, _WINDOW // 2)
    windows = [given.text[at : at + _WINDOW] for at in range(0, last + 1, stride)]
    return sum(window in sent for window in windows) * 2 > len(windows)


def has_no_sections(given: Given) -> bool:
    """Fewer than half of the headings: a chat answer, or a page of something else."""
    found = {instruction.heading_of(line) for line in given.text.splitlines()}
    return sum(heading in found for heading, _ in instruction.SECTIONS) * 2 < len(instruction.SECTIONS)


CHECKS: dict[str, Callable[[Given], bool]] = {
    "summary_tool_call": calls_a_tool,
    "summary_declined": declines,
    "summary_empty": says_nothing,
    "summary_too_long": is_too_long,
    "summary_cut_off": breaks_off,
    "summary_echo": gives_the_prompt_back,
    "summary_unsectioned": has_no_sections,
    "summary_no_smaller": saves_nothing,
}
"""By the code that `Compacted.fallback` and the event carry, in the order in which they are asked."""


def texts(block_texts: Sequence[str]) -> list[str]:
    """What these blocks say, for comparison: of a call its arguments as they were sent."""
    return [blocks.text_of(block) or block for block in block_texts]

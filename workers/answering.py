"""What the person of a turn is answered with: the text of the reply that ended it, that it was cut where it was, and
that nothing was done where it only looks as if something had been.

The note stands in the turn's answer, and so wherever that goes: a parent, a brief, a screen. The transcript has what
the model wrote, no more.
"""

from __future__ import annotations

import re

OUTPUT_FULL = "max_tokens"
"""The wire's word for a reply that was ended because it had reached the most that its call might write."""
CUT = (
    "[Nightshift: this answer was cut here, for it had reached the most that one reply may be long. "
    "Ask for the rest, or for a shorter answer.]"
)
SAID_NOT_CALLED = (
    "[Nightshift: the model wrote a tool call as words, and words run nothing: no tool was called by this answer. "
    "Its server may need a chat template that knows tools, or the model is too small for them.]"
)
_CALL = re.compile(
    r"<tool_call>\s*[{\[]"  # Hermes, Qwen, SmolLM
    r"|\[TOOL_CALLS\](?:\s*\[\{|\w+\[ARGS\])"  # Mistral
    r"|<\|python_tag\|>"  # Llama 3
    r"|<function=\w+"  # Llama 3, Qwen 3 Coder
)
"""How the templates of open models write a call. A server that does not read it hands it on as text; so does a model
that repeats what it has read. It is never run: what a page or a file says may stand in an answer too."""


def answer(text: str, stop_reason: str | None) -> str:
    notes = [CUT] if stop_reason == OUTPUT_FULL else []
    if _CALL.search(text) is not None:
        notes.append(SAID_NOT_CALLED)
    return "\n\n".join((text.rstrip(), *notes)) if notes else text

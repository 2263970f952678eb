"""A result that another one, which still stands whole in the prompt, says to the character becomes a line at birth.

This never breaks the cache: nothing that was sent changes. The message keeps the whole; what went out is its `sent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shared.request import blocks, handles
from workers.gathering import Gathered
from workers.outgoing import NewMessage
from workers.reduction import prune
from workers.reduction.sizes import content_digest

LEAST = 600
"""Characters of a block from which it is looked at; what is worth a stub is longer."""


def stubbed(gathered: Gathered, raw: Mapping[bytes, tuple[int, int]]) -> Gathered:
    """The same, with a line for each result that repeats one of `raw` (sizes.Tally) or an earlier one of this batch."""
    if not gathered.runs:
        return gathered
    tools = {(run.step, run.ordinal): run.tool for run in gathered.runs}
    here: dict[bytes, int] = {}
    messages: list[NewMessage] = []
    for message in gathered.messages:
        tool = tools.get((message.step, message.ordinal))
        line = None if tool is None or len(message.content) < LEAST else _line(message, tool, raw, here)
        messages.append(message if line is None else _with(message, line))
    return replace(gathered, messages=tuple(messages))


def _line(message: NewMessage, tool: str, raw: Mapping[bytes, tuple[int, int]], here: dict[bytes, int]) -> str | None:
    (block,) = blocks.split(message.content)
    name = content_digest(block)
    known = raw.get(name)
    if known is not None:
        return prune.line_of_same(tool, handles.result(*known))
    earlier = here.setdefault(name, message.ordinal)
    if earlier == message.ordinal:
        return None
    return f"[{tool}: the same, to the character, as the result of call {earlier} of this step]"


def _with(message: NewMessage, line: str) -> NewMessage:
    (block,) = blocks.split(message.content)
    return replace(message, sent=blocks.join([blocks.set_text(block, line)]))

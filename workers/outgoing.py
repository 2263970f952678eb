"""Rows about to be written by a step, and their form as parameters of one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.request.projection import MessageRow


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that has no id yet. `content` and `sent` are texts of JSON arrays of blocks."""

    step: int
    ordinal: int
    author: str
    role: str
    content: str
    sent: str | None = None
    stable_prefix_len: int | None = None
    blocks: str | None = None

    def row(self, provisional: int, turn: str) -> MessageRow:
        """As projection will see it, under an id that only stands for "after everything"."""
        return MessageRow(
            provisional, turn, self.step, self.ordinal, self.author, self.role, self.content, self.sent, self.blocks,
            self.stable_prefix_len,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of one tool run. `text` is what the model reads."""

    step: int
    ordinal: int
    call_id: str
    tool: str
    status: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """An inbox row that becomes the message at (step, ordinal)."""

    inbox: int
    step: int
    ordinal: int


def message_params(messages: Sequence[NewMessage]) -> dict[str, Any]:
    return {
        "m_step": [m.step for m in messages],
        "m_ordinal": [m.ordinal for m in messages],
        "m_author": [m.author for m in messages],
        "m_role": [m.role for m in messages],
        "m_content": [m.content for m in messages],
        "m_sent": [m.sent for m in messages],
        "m_stable": [m.stable_prefix_len for m in messages],
    }


def run_params(runs: Sequence[Finished]) -> dict[str, Any]:
    return {
        "r_step": [r.step for r in runs],
        "r_ordinal": [r.ordinal for r in runs],
        "r_status": [r.status for r in runs],
        "r_result": [r.text for r in runs],
        "r_error": [r.is_error for r in runs],
    }


def fold_params(folds: Sequence[Folded]) -> dict[str, Any]:
    return {
        "i_id": [f.inbox for f in folds],
        "i_step": [f.step for f in folds],
        "i_ordinal": [f.ordinal for f in folds],
    }

"""Rows about to be written by a step, and their form as parameters of one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from shared.request.projection import MessageRow
from shared.store.arrays import array
from workers import circling


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
class Kept:
    """The whole of a result that the transcript holds a preview of; a row of artifacts, written with that."""

    id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of one tool run. `text` is what the model reads: all of it, or a preview of `kept`."""

    step: int
    ordinal: int
    call_id: str
    tool: str
    status: str
    text: str
    is_error: bool
    kept: Kept | None = None


@dataclass(frozen=True, slots=True)
class Folded:
    """An inbox row that becomes the message at (step, ordinal)."""

    inbox: int
    step: int
    ordinal: int


def returned(rows: Sequence[DictRow]) -> list[MessageRow]:
    """The messages that a statement gave back, as the database holds them."""
    return [
        MessageRow(
            r["id"], r["turn"], r["step"], r["ordinal"], r["author"], r["role"], r["content"], r["sent"], r["blocks"],
            r["stable_prefix_len"],
        )
        for r in rows
        if r["id"] is not None
    ]  # fmt: skip


def message_params(messages: Sequence[NewMessage]) -> dict[str, Any]:
    return {
        "m_step": array(m.step for m in messages),
        "m_ordinal": array(m.ordinal for m in messages),
        "m_author": array(m.author for m in messages),
        "m_role": array(m.role for m in messages),
        "m_content": array(m.content for m in messages),
        "m_sent": array(m.sent for m in messages),
        "m_stable": array(m.stable_prefix_len for m in messages),
    }


def run_params(runs: Sequence[Finished]) -> dict[str, Any]:
    return {
        "r_step": array(r.step for r in runs),
        "r_ordinal": array(r.ordinal for r in runs),
        "r_status": array(r.status for r in runs),
        "r_result": array(r.text for r in runs),
        "r_error": array(r.is_error for r in runs),
    }


def kept_params(runs: Sequence[Finished]) -> dict[str, Any]:
    """Of those that are kept whole; empty where none is."""
    kept = [(run, run.kept) for run in runs if run.kept is not None]
    if not kept:
        return {}
    return {
        "a_id": array(str(one.id) for _, one in kept),
        "a_step": array(run.step for run, _ in kept),
        "a_ordinal": array(run.ordinal for run, _ in kept),
        "a_body": array(one.text for _, one in kept),
        "a_characters": array(len(one.text) for _, one in kept),
        "a_came": array(circling.came(one.text) for _, one in kept),
    }


def fold_params(folds: Sequence[Folded]) -> dict[str, Any]:
    return {
        "i_id": array(f.inbox for f in folds),
        "i_step": array(f.step for f in folds),
        "i_ordinal": array(f.ordinal for f in folds),
    }

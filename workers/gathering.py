"""What goes into the transcript at a boundary: finished tool runs, then whatever waits in the inbox, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg.rows import DictRow

from shared.request import blocks
from shared.store.statements import every, inbox
from shared.values import ASKED_OF_TRANSCRIPT, InboxKind
from workers.held import Held
from workers.outgoing import Finished, Folded, NewMessage
from workers.ports import Ports
from workers.prompt import speaker

FOLD_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Gathered:
    """Messages in the order of their ordinals; `steered` are the texts that a person sent meanwhile."""

    messages: tuple[NewMessage, ...]
    runs: tuple[Finished, ...]
    folds: tuple[Folded, ...]
    steered: tuple[dict[str, Any], ...]
    looked: bool = True
    """Whether the inbox was read for it; if not, the statement that writes it finds out whether that was needed."""

    @property
    def empty(self) -> bool:
        return not self.messages


NOTHING = Gathered((), (), (), ())


def waiting(ports: Ports, held: Held) -> list[DictRow]:
    """What waits in the inbox for this turn. What arrives after this read is folded at the next boundary."""
    params = {"session": held.claim.session, "turn": held.claim.turn, "limit": FOLD_LIMIT}
    return ports.database.read(lambda c: every(c, inbox.WAITING, params))


def gather(held: Held, runs: Sequence[Finished], rows: Sequence[DictRow] | None) -> Gathered:
    """Pure but for the ordinals, which it only reads. What is asked of the transcript as a whole is no message."""
    rows = None if rows is None else [row for row in rows if row["kind"] not in ASKED_OF_TRANSCRIPT]
    messages = [
        NewMessage(
            run.step,
            run.ordinal,
            "tool",
            "user",
            blocks.join([blocks.tool_result(run.call_id, run.text, run.is_error)]),
        )
        for run in runs
    ]
    ordinal = max(held.next_ordinal, *(run.ordinal + 1 for run in runs)) if runs else held.next_ordinal
    folds: list[Folded] = []
    steered: list[dict[str, Any]] = []
    for offset, row in enumerate(rows or ()):
        at, author = ordinal + offset, row["kind"] if row["kind"] == InboxKind.CHILD else str(row["author"])
        messages.append(
            NewMessage(
                held.step, at, author, "user", row["payload"], stable_prefix_len=row["stable_prefix_len"],
                sent=speaker.named(row["payload"], row["author_name"]) if row["named"] else None,
            )
        )  # fmt: skip
        folds.append(Folded(row["id"], held.step, at))
        if row["kind"] == InboxKind.STEER:
            steered.append({"author": row["author_name"], "text": _text(row["payload"])})
    return Gathered(tuple(messages), tuple(runs), tuple(folds), tuple(steered), looked=rows is not None)


def with_warning(gathered: Gathered, line: str) -> Gathered:
    """The same, with a line at the end of what was sent of the newest tool result. What a person reads stays as it
    was."""
    for index in range(len(gathered.messages) - 1, -1, -1):
        message = gathered.messages[index]
        if message.author == "tool":
            (block,) = blocks.split(message.sent or message.content)
            sent = blocks.join([blocks.append_text(block, line)])
            changed = (*gathered.messages[:index], replace(message, sent=sent), *gathered.messages[index + 1 :])
            return replace(gathered, messages=changed)
    return gathered


def has_result(gathered: Gathered) -> bool:
    return any(message.author == "tool" for message in gathered.messages)


def _text(payload: str) -> str:
    return "\n".join(blocks.text_of(block) for block in blocks.split(payload))

"""The same conversation under the defaults of the system that the seeds describe: SIMULATED, no line of it is run.

Two of them, from reference/hermes-0.19.md and the seeds. Both edit nothing but by compaction over a threshold (half of
the window less the output's reserve, three quarters below a window of 512,000), keep the first three messages until the
first compaction and a tail of a fifth of the threshold, and mark for five minutes.

- `seeds`: marks at the stable tier, the system prompt and the last two messages; reasoning is kept.
- `released`: marks at the system prompt and the last three messages; only the latest reply keeps its reasoning, so the
  step before is written again.

A summary costs one uncached call: each message of the middle cut to 6,000 characters and each argument to 1,500, and a
fifth of what it reads, 2,000 to 10,000 tokens, as output. Background reviews (5 to 22 % more) are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tests.bench.day.bill import MODELS, PER_BLOCK, PER_MESSAGE, REPLY_HEAD, Bill, Block, Book, Cache, Marks, Message
from tests.bench.day.counterfactual import Line

RESERVE = 64_000
SMALL_WINDOW = 512_000
TEMPLATE = 2_000
CHARS_A_TOKEN = 2.5
CUT, CUT_ARGUMENTS = 6_000, 1_500


@dataclass(frozen=True, slots=True)
class Paid:
    bills: list[Bill]
    compactions: int


def threshold(window: int) -> int:
    return int((window - RESERVE) * (0.75 if window < SMALL_WINDOW else 0.5))


def simulate(book: Book, line: Line, window: int, *, released: bool) -> Paid:
    """Call after call over the unedited transcript."""
    model = MODELS[line.model]
    limit = threshold(window)
    cache, bills, compactions = Cache(book.tree), list[Bill](), 0
    laid = _Sent(book, line)
    kept: list[int] = []  # what stands before what is still raw
    raw_from, billed, before = 0, 0, 0
    for count, at, output in line.ends:
        new = sum(_tokens(book, line, one) for one in line.messages[before:count])
        if billed + new >= limit:
            cut = _cut(book, line, raw_from, count, limit)
            head = 0 if compactions else min(3, cut)
            middle = line.messages[raw_from + (head if not compactions else 0) : cut]
            if middle:
                spent, size = _summariser(book, line, [*(kept if compactions else ()), *middle])
                bills.append(spent)
                kept = [*line.messages[raw_from : raw_from + head], _summary(book, compactions, size)]
                raw_from = cut
                compactions += 1
        sent = [*kept, *line.messages[raw_from:count]]
        path, ends = laid.lay_out(sent, released=released)
        marks = _marks(line, ends, released=released)
        bill, writes = cache.open(path, marks, at, model.minimum)
        cache.commit(writes, at)
        bills.append(Bill(bill.input, bill.read, bill.write_5m, bill.write_1h, output))
        billed, before = bill.prompt, count
    return Paid(bills, compactions)


def _tokens(book: Book, line: Line, message: int) -> int:
    factor = MODELS[line.model].factor
    blocks = book.messages[message].blocks
    return PER_MESSAGE + sum(ceil(book.blocks[one].raw * factor) + PER_BLOCK for one in blocks)


def _cut(book: Book, line: Line, first: int, count: int, limit: int) -> int:
    """Where the tail begins: a fifth of the threshold, never between a call and its results, the last words of the
    person always in it."""
    budget, at = limit * 0.2, count
    while at > first and budget > 0:
        at -= 1
        budget -= _tokens(book, line, line.messages[at])
    while at > first and _answers(book, line.messages[at]):
        at -= 1
    return at


def _answers(book: Book, message: int) -> bool:
    return any(book.blocks[one].answers for one in book.messages[message].blocks)


def _summariser(book: Book, line: Line, middle: Sequence[int]) -> tuple[Bill, int]:
    read = TEMPLATE
    for one in middle:
        for at in book.messages[one].blocks:
            block = book.blocks[at]
            most = CUT_ARGUMENTS if block.calls else CUT
            read += min(ceil(block.raw * MODELS[line.model].factor), ceil(most / CHARS_A_TOKEN))
    wrote = max(2_000, min(10_000, read // 5))
    return Bill(input=read + REPLY_HEAD, output=wrote), wrote


def _summary(book: Book, number: int, size: int) -> int:
    """A message of so many tokens that is in no cache yet."""
    book.blocks.append(Block("text", ceil(size / 1.3), 0))
    return book.message(Message("user", (len(book.blocks) - 1,)))


class _Sent:
    """The request that was laid out last: the next one shares most of it."""

    def __init__(self, book: Book, line: Line) -> None:
        self._book, self._line = book, line
        self._root = book.tree.root(("peer", line.model))
        self._messages: list[Message] = []
        self._path = book.tree.walk(self._root, MODELS[line.model], line.tools, line.front, (), book.blocks)
        self._ends = [len(line.front)]

    def lay_out(self, sent: Sequence[int], *, released: bool) -> tuple[array[int], list[int]]:
        """Nodes, and after how many blocks each message ends."""
        latest = max((at for at, one in enumerate(sent) if self._book.messages[one].role == "assistant"), default=-1)
        messages = [self._message(one, bare=released and at != latest) for at, one in enumerate(sent)]
        same = next(
            (at for at, (old, new) in enumerate(zip(self._messages, messages, strict=False)) if old != new),
            min(len(self._messages), len(messages)),
        )
        del self._path[self._ends[same] :], self._ends[same + 1 :]
        for message in messages[same:]:
            self._ends.append(self._ends[-1] + len(message.blocks))
        model = MODELS[self._line.model]
        last = self._path[-1] if self._path else self._root
        self._book.tree.grow(self._path, last, model, messages[same:], self._book.blocks)
        self._messages = messages
        return self._path, self._ends[1:]

    def _message(self, number: int, *, bare: bool) -> Message:
        message = self._book.messages[number]
        if not bare or message.role != "assistant":
            return message
        kinds = ("thinking", "redacted_thinking")
        return Message(message.role, tuple(b for b in message.blocks if self._book.blocks[b].kind not in kinds))


def _marks(line: Line, ends: Sequence[int], *, released: bool) -> Marks:
    front = line.front_ends[-1:] if released else line.front_ends[:2]
    return tuple((at, "5m") for at in sorted({*front, *ends[-3 if released else -2 :]}))

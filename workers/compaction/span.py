"""Which messages one summary stands for. Pure.

Invariants: the head and the tail stay as they are; a call and its results are on one side; an earlier summary is inside
or outside as a whole; the last request of a person stays, and so does the newest request of anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.request import blocks, estimate
from shared.request.edits import Summary
from shared.request.projection import MessageRow, Piece
from workers.reduction.sizes import Tail

NOT_SPOKEN = frozenset({"tool", "child", "model"})
"""Authors of messages that are nobody's request."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that the model sees: a message, or an earlier summary that stands for `first`..`last`. `tokens` as the
    provider would bill them. `spoken`: a request; `person`: not one that a machine built."""

    first: int
    last: int
    role: str
    tokens: float
    calls: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    spoken: bool = False
    person: bool = False
    summary: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A summary's range, ids included. `kept` stand inside it as they are. `middle` are the entries that it replaces,
    `tokens` theirs, of which `fresh` were in no summary yet."""

    first: int
    last: int
    kept: tuple[int, ...]
    middle: tuple[Entry, ...]
    tokens: int
    fresh: int


def entries(
    pieces: Sequence[Piece], rows: Iterable[MessageRow], summaries: Iterable[Summary], per_weight: float
) -> tuple[Entry, ...]:
    """What the projection shows, in its order. `per_weight` turns an estimate's weight into tokens as billed."""
    by_id = {row.id: row for row in rows}
    ranges = {summary.id: summary for summary in summaries}
    return tuple(_entry(piece, by_id, ranges, per_weight) for piece in pieces)


def choose(shown: Sequence[Entry], tail: Tail, least: int | None = None) -> Span | None:
    """The span of a summary made now; None where it would replace nothing, or nothing but an earlier summary. With
    `least` only the oldest exchanges, as many as hold so many tokens that are in no summary yet."""
    groups = _groups(shown)
    head = _head(shown)
    start = _tail_start(shown, groups, head, tail)
    stays = _stays(shown)
    middle = list(range(head, start))
    while middle and middle[0] in stays:
        middle.pop(0)
    if least is not None:
        middle = _oldest(shown, middle, stays, frozenset(groups), least)
    while middle and middle[-1] in stays:
        middle.pop()
    replaced = tuple(shown[at] for at in middle if at not in stays)
    fresh = [entry for entry in replaced if not entry.summary]
    if not fresh:
        return None
    kept = tuple(shown[at].first for at in middle if at in stays)
    return Span(
        min(entry.first for entry in replaced),
        max(entry.last for entry in replaced),
        kept,
        replaced,
        round(sum(entry.tokens for entry in replaced)),
        round(sum(entry.tokens for entry in fresh)),
    )


def _oldest(
    shown: Sequence[Entry], middle: Sequence[int], stays: frozenset[int], starts: frozenset[int], least: int
) -> list[int]:
    """An exchange goes from a request to the next one."""
    fresh = 0.0
    for n, at in enumerate(middle):
        if fresh >= least and shown[at].spoken and at in starts:
            return list(middle[:n])
        if at not in stays and not shown[at].summary:
            fresh += shown[at].tokens
    return list(middle)


def _entry(piece: Piece, rows: Mapping[int, MessageRow], summaries: Mapping[int, Summary], per_weight: float) -> Entry:
    tokens = estimate.weigh_units(block.encode() for block in piece.blocks) * per_weight
    stands = summaries.get(piece.id)
    if stands is not None:
        return Entry(stands.first, stands.last, piece.role, tokens, summary=True)
    calls, answers = _pairs(piece.blocks)
    row = rows.get(piece.id)
    spoken = row is not None and row.role == "user" and row.author not in NOT_SPOKEN
    machine = row is not None and row.stable_prefix_len is not None
    return Entry(piece.id, piece.id, piece.role, tokens, calls, answers, spoken, spoken and not machine)


def _pairs(texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The calls that a message makes and those that it answers."""
    calls: set[str] = set()
    answers: set[str] = set()
    for text in texts:
        kind = blocks.kind(text)
        if kind == "tool_use":
            calls.add(str(blocks.parse(text).get("id", "")))
        elif kind == "tool_result":
            answers.add(str(blocks.parse(text).get("tool_use_id", "")))
    return frozenset(calls), frozenset(answers)


def _groups(shown: Sequence[Entry]) -> list[int]:
    """Where each run of entries begins that may not be split: from a call to the last of its results."""
    answered: dict[str, int] = {}
    for at, entry in enumerate(shown):
        for call in entry.answers:
            answered[call] = at
    starts: list[int] = []
    reach = -1
    for at, entry in enumerate(shown):
        if at > reach:
            starts.append(at)
        reach = max(reach, at, *(answered.get(call, at) for call in entry.calls)) if entry.calls else max(reach, at)
    return starts


def _head(shown: Sequence[Entry]) -> int:
    """What was said before the first answer: the task as asked. A summary is no part of it."""
    return next((at for at, entry in enumerate(shown) if entry.role == "assistant" or entry.summary), len(shown))


def _tail_start(shown: Sequence[Entry], groups: Sequence[int], head: int, tail: Tail) -> int:
    """The first entry of the tail: whole groups from the end, as long as both limits hold. What nobody has answered yet
    is in it, however much that is."""
    answered = max((at for at, entry in enumerate(shown) if entry.role == "assistant"), default=-1)
    unread = min(answered + 1, len(shown) - 1)
    start, count, tokens = len(shown), 0, 0.0
    for begin in reversed(groups):
        if begin < head:
            break
        count += start - begin
        tokens += sum(entry.tokens for entry in shown[begin:start])
        if start <= unread and (count > tail.messages or tokens > tail.tokens):
            break
        start = begin
    return max(start, head)


def _stays(shown: Sequence[Entry]) -> frozenset[int]:
    """The last request of a person, and the newest of anybody: what the work in hand is for."""
    newest = [at for at, entry in enumerate(shown) if entry.spoken][-1:]
    person = [at for at, entry in enumerate(shown) if entry.person][-1:]
    return frozenset((*newest, *person))

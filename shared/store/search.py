"""What was ever said and may be seen: found by words, shown in its surroundings. For the worker's tool and for the API.

Bounded: each search has one budget of time, over all its statements, in a transaction of its own that only reads. What
the budget cut is said, and never taken for "there is nothing".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow

from shared import words
from shared.readable import TEXT_BYTES, text_of
from shared.request import handles
from shared.store.pool import Connection
from shared.store.statements import Statement, every, one, recall
from shared.text import begun
from shared.values import SessionKind
from shared.words import Asked

BUDGET_S = 3.0
MOST_HITS = 100
FEW = 500
"""Sessions: who may see no more is searched through them alone."""
MANY_WORDS, MANY_PARTS = 800_000, 20_000
"""Ids that are looked through at first (a message takes three or four). For a part of a word the texts themselves are
read, which is much dearer."""
SNIPPET = 400
AROUND = 240
_LOOKED_AT = 20  # occurrences of one mark that are considered for the snippet
SETTINGS = """
select set_config('transaction_read_only', 'on', true), set_config('statement_timeout', %(ms)s, true),
  set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
  set_config('plan_cache_mode', 'force_custom_plan', true)
"""
NEVER = 2**62


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom: all `readers` must be allowed to see what is found; none stands for the whole team. `own` is the asking
    session, whose messages from `since` on are the question itself. `child`: the asking session, where it is one."""

    readers: tuple[UUID, ...]
    own: UUID | None = None
    since: int = NEVER
    child: UUID | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message beside a hit: its beginning."""

    message: int
    author: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """`snippet` is cut from the message; `handle` names the whole block that it stands in. `more` counts the session's
    other messages that were found."""

    session: UUID
    title: str
    kind: str
    message: int
    turn: UUID
    author: str
    role: str
    covered: bool
    created_at: datetime
    snippet: str
    handle: str
    more: int
    before: Said | None
    after: Said | None


@dataclass(frozen=True, slots=True)
class Found:
    """One page. `following`: more stand behind it. `cut`: the time was over before everything was looked at."""

    hits: tuple[Hit, ...]
    following: bool
    cut: bool


def scope_of(connection: Connection, session: UUID, turn: UUID) -> Scope | None:
    """Whose eyes an asking session answers to; None where there is no such session."""
    row = one(connection, recall.READERS, {"session": session, "turn": turn})
    if row is None:
        return None
    readers = () if row["team"] else tuple(dict.fromkeys(row["readers"]))
    child = session if row["kind"] == SessionKind.CHILD else None
    return Scope(readers, session, NEVER if row["since"] is None else row["since"], child)


def search(
    connection: Connection,
    asked: Asked,
    scope: Scope,
    *,
    limit: int,
    offset: int = 0,
    within: UUID | None = None,
    budget_s: float = BUDGET_S,
) -> Found:
    """The best hit of each session, best first: those that hold all words, then all of them with endings, then any,
    then all of them inside longer words. `within` one session: its messages, each a hit."""
    until = time.monotonic() + budget_s
    wanted = min(offset + limit + 1, MOST_HITS)
    readers: dict[str, Any] = {"readers": list(scope.readers)}
    places = _in_time(connection, recall.WHERE_TO_LOOK, readers | {"few": FEW}, until)
    if not places:
        return Found((), following=False, cut=True)
    only = [within] if within else places[0]["sessions"] if places[0]["few"] else None
    values = readers | {"own": scope.own, "since": scope.since, "only": only, "single": within is not None}
    ranked: dict[object, DictRow] = {}
    cut = False
    for statement, more in passes(asked, places[0]["newest"] or 0, few=only is not None):
        rows = _in_time(connection, statement, values | more, until)
        cut = rows is None
        for row in rows or ():
            ranked.setdefault(row["message"] if within else row["session"], row)
        if cut or len(ranked) >= wanted:
            break
    chosen = list(ranked.values())[offset : offset + limit]
    shown = _shown(connection, asked, scope, chosen, until)
    following = offset + limit < min(len(ranked), MOST_HITS)
    return Found(shown or (), following, cut or shown is None)


def passes(asked: Asked, newest: int, *, few: bool) -> Iterator[tuple[Statement, dict[str, Any]]]:
    """What is asked one after the other, each in stretches of ids: the newest first, each eight times as long as the
    one before."""
    for statement, question, width in _stages(asked, few=few):
        upto, reach = newest, width
        while upto > 0:
            after = max(0, upto - reach)
            yield statement, {**question, "after": after, "upto": upto}
            upto, reach = after, 8 * reach


def _stages(asked: Asked, *, few: bool) -> Iterator[tuple[Statement, dict[str, Any], int]]:
    yield recall.FIND_WORDS, {"query": asked.whole, "rank": asked.whole}, MANY_WORDS
    if asked.opened != asked.whole:
        yield recall.FIND_WORDS, {"query": asked.opened, "rank": asked.opened}, MANY_WORDS
    if asked.some != asked.whole:
        yield recall.FIND_WORDS, {"query": asked.some, "rank": asked.some}, MANY_WORDS
    if asked.parts:
        first, *others = asked.parts
        question = {"part": first, "parts": others, "beside": asked.beside, "rank": asked.some}
        yield recall.FIND_PARTS_OF_FEW if few else recall.FIND_PARTS, question, MANY_PARTS


def _shown(
    connection: Connection, asked: Asked, scope: Scope, chosen: Sequence[DictRow], until: float
) -> tuple[Hit, ...] | None:
    if not chosen:
        return ()
    more = {row["message"]: row["hits"] - 1 for row in chosen}
    values = {"messages": list(more), "chars": TEXT_BYTES * 4, "around": AROUND * 10, "readers": list(scope.readers)}
    rows = _in_time(connection, recall.SHOW_HITS, values, max(until, time.monotonic() + 1.0))
    return None if rows is None else tuple(_hit(row, asked, more[row["id"]]) for row in rows)


def _in_time(
    connection: Connection, statement: Statement, values: Mapping[str, Any], until: float
) -> list[DictRow] | None:
    """All rows; None where there was no time for them."""
    left = until - time.monotonic()
    if left <= 0:
        return None
    try:
        with connection.transaction():
            connection.execute(SETTINGS, {"ms": str(max(1, int(left * 1000)))})
            return every(connection, statement, values)
    except psycopg.errors.QueryCanceled:
        return None


def _hit(row: DictRow, asked: Asked, more: int) -> Hit:
    text = text_of(row["content"])
    start, end = place(text, asked.marks)
    block = text.count(words.RECORD, 0, start)
    return Hit(
        session=row["session"], title=row["title"], kind=row["kind"], message=row["id"], turn=row["turn"],
        author=row["name"] or row["author"], role=row["role"], covered=row["covered"], created_at=row["created_at"],
        snippet=begun(_flat(text[start:end]), SNIPPET), handle=handles.result(row["id"], block), more=more,
        before=_said(row, "before"), after=_said(row, "after"),
    )  # fmt: skip


def _said(row: DictRow, side: str) -> Said | None:
    if row[f"{side}_id"] is None:
        return None
    author = row[f"{side}_name"] or row[f"{side}_author"]
    return Said(row[f"{side}_id"], author, row[f"{side}_role"], begun(_flat(text_of(row[f"{side}_content"])), AROUND))


def place(body: str, marks: Sequence[str]) -> tuple[int, int]:
    """Where the snippet begins, at the stretch that holds the most of what was asked for, and where its block ends."""
    folded = body.lower()
    if len(folded) != len(body):  # a letter that grows in lower case would shift every place behind it
        folded = body
    best, at = 0, 0
    places: list[tuple[int, int]] = []
    for weight, mark in enumerate(reversed(marks), start=1):
        start = -1
        for _ in range(_LOOKED_AT):
            start = folded.find(mark.lower(), start + 1)
            if start < 0:
                break
            places.append((start, weight))
    places.sort()
    for index, (start, _) in enumerate(places[: _LOOKED_AT * _LOOKED_AT]):
        held = {weight for found, weight in places[index : index + _LOOKED_AT] if found < start + SNIPPET // 2}
        if sum(held) > best:
            best, at = sum(held), start
    first = body.rfind(words.RECORD, 0, at) + 1
    last = body.find(words.RECORD, at)
    start = max(first, at - SNIPPET // 4)
    return start, len(body) if last < 0 else last


def _flat(text: str) -> str:
    return " ".join(text.replace(words.RECORD, " ").split())

"""A search over 100,000 messages: who sees one session in a hundred beside who sees all, by the product's own search,
in a database of its own that the product's own indexing filled."""

from __future__ import annotations

import functools
import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from uuid import UUID, uuid4

import psycopg

from shared import words
from shared.readable import indexed
from shared.store import search
from shared.store.pool import Connection
from shared.store.search import Scope
from shared.store.statements import schedule
from tests.bench.aside import database
from tests.bench.figures import Figure, middle, quantile
from tests.bench.house import House

DATABASE = "bench_search"
SESSIONS, EACH = 1_000, 100
FEW = SESSIONS // 100
ROUNDS = 12
_CJK = "数据库连接超时重试预算决定会议记录部署回滚测试失败日志缓存前缀摘要搜索会话消息工具结果模型价格东京大阪天気予報"
SEED = """
with people as (
  insert into principals (id, name, kind, role) select i, 'search ' || i, 'person', 'member'
  from unnest(array[%(all)s, %(few)s, %(other)s]::uuid[]) i returning id
), made as (
  insert into sessions (id, owner, audience, provider, model, workspace, title)
  select i, %(other)s, 'people', 'anthropic', 'claude-sonnet-5-5', '/none', 'session ' || n
  from unnest(%(sessions)s::uuid[]) with ordinality as x(i, n), (select count(*) from people) p returning id
), named as (
  insert into session_people select id, %(all)s from made
)
insert into turns (id, session, status, class, requested_by, admit_key, max_steps, deadline_s, finished_at, answer)
select id, id, 'done', 'interactive', %(other)s, now(), 90, 7200, now(), '' from made
"""
MESSAGE = """
insert into messages (session, turn, step, ordinal, author, role, content, fence)
values (%s, %s, %s, 0, %s, %s, %s, 0) returning id
"""
NAME_FEW = "insert into session_people select id, %s from unnest(%s::uuid[]) id"
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ar", "en", "il", "on", "ut")]


@functools.cache
def _vocabulary() -> list[str]:
    dice = random.Random(7)
    return list(dict.fromkeys("".join(dice.choices(SYLLABLES, k=dice.randint(2, 5))) for _ in range(24_000)))


@functools.cache
def _weights() -> list[float]:
    """Words as texts use them: the n-th most common one n times as seldom as the first."""
    return list(accumulate(1 / (rank + 3) for rank in range(len(_vocabulary()))))


def _rank(dice: random.Random, first: int, last: int | None = None) -> str:
    return dice.choice(_vocabulary()[first:last])


def _chinese(dice: random.Random) -> str:
    at = dice.randrange(len(_CJK) - 4)
    return _CJK[at : at + dice.randint(1, 4)]


QUERIES: dict[str, Callable[[random.Random], str]] = {
    "a rare word": lambda dice: _rank(dice, 8_000),
    "a common word": lambda dice: _rank(dice, 0, 20),
    "three words": lambda dice: " ".join(_rank(dice, 100, 2_000) for _ in range(3)),
    "a question": lambda dice: f"what did we decide about {_rank(dice, 1_000)} and {_rank(dice, 1_000)}",
    "a part of a word": lambda dice: _rank(dice, 200)[1:6],
    "Chinese": _chinese,
    "no such word": lambda _: "zzyzzyva",
}


def measure(house: House) -> list[Figure]:
    with database(house, DATABASE) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.prepare_threshold = 0  # as the product's pools do
        all_, few = uuid4(), uuid4()
        rate, size = _fill(connection, all_, few)
        of_all, of_few = _searches(connection, (Scope((all_,)), Scope((few,))))
    return [*_figures(of_all, of_few), Figure("messages indexed a second, one connection", rate, "", note=size)]


def _fill(connection: Connection, all_: UUID, few: UUID) -> tuple[float, str]:
    """Messages a second that indexing took, and how large the index is beside the messages."""
    sessions = [uuid4() for _ in range(SESSIONS)]
    people = {"all": all_, "few": few, "other": uuid4(), "sessions": sessions}
    connection.execute("set statement_timeout = 0")
    connection.execute(SEED.encode(), people)
    connection.execute(NAME_FEW.encode(), (few, sessions[::100]))
    spent = 0.0
    dice = random.Random(11)
    for step in range(EACH):  # what takes time is made outside a transaction, which may not idle for five seconds
        rows = [(s, s, step, *_message(dice)) for s in sessions]
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(MESSAGE.encode(), rows, returning=True)
            ids = list(_ids(cursor))
        began = time.monotonic()
        made = [_indexed(id_, row) for id_, row in zip(ids, rows, strict=True)]
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(schedule.INDEX_MESSAGE.text, made)
        spent += time.monotonic() - began
    connection.execute("vacuum analyze")
    sizes = connection.execute(
        "select pg_total_relation_size('message_search') / 1e6, pg_total_relation_size('messages') / 1e6"
    ).fetchone()
    assert sizes is not None
    return SESSIONS * EACH / spent, f"the index takes {sizes[0]:,.0f} MB, the messages {sizes[1]:,.0f} MB"


def _indexed(message: int, row: tuple[UUID, UUID, int, str, str, str]) -> dict[str, object]:
    session, _, _, author, role, content = row
    found = indexed(content, author, role)
    head = {"id": message, "session": session, "version": words.VERSION}
    return {**head, "words": found.words, "folded": found.folded}


def _ids(cursor: psycopg.Cursor[tuple[int]]) -> Iterator[int]:
    while True:
        row = cursor.fetchone()
        assert row is not None
        yield row[0]
        if not cursor.nextset():
            return


def _message(dice: random.Random) -> tuple[str, str, str]:
    """Author, role and content: mostly some lines, one in ten in Chinese, one in fifty a long result of a tool."""
    roll = dice.random()
    if roll < 0.1:
        text = "".join(dice.choices(_CJK, k=dice.randint(20, 600)))
    else:
        count = dice.randint(2_000, 5_000) if roll < 0.12 else dice.randint(10, 250)
        text = " ".join(dice.choices(_vocabulary(), cum_weights=_weights(), k=count))
    if roll < 0.5:
        block = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": text}]}
        return "tool", "user", json.dumps([block], ensure_ascii=False)
    author, role = ("model", "assistant") if roll < 0.8 else ("person", "user")
    return author, role, json.dumps([{"type": "text", "text": text}], ensure_ascii=False)


Times = dict[str, list[float]]


def _searches(connection: Connection, scopes: tuple[Scope, Scope]) -> tuple[Times, Times]:
    """Milliseconds of each search, turn about."""
    found: tuple[Times, Times] = ({kind: [] for kind in QUERIES}, {kind: [] for kind in QUERIES})
    dice = random.Random(3)
    for turn in range(ROUNDS + 1):
        for kind, make in QUERIES.items():
            asked = words.ask(make(dice))
            assert asked is not None
            for scope, times in zip(scopes, found, strict=True):
                began = time.perf_counter()
                page = search.search(connection, asked, scope, limit=5, budget_s=30)
                took = (time.perf_counter() - began) * 1_000
                assert not page.cut, (kind, asked)
                if turn:  # the first round warms
                    times[kind].append(took)
    return found


def _figures(of_all: Times, of_few: Times) -> list[Figure]:
    every = [took for times in of_all.values() for took in times]
    few = [took for times in of_few.values() for took in times]
    kinds = "; ".join(f"{k} {middle(of_few[k]):.0f}/{middle(of_all[k]):.0f}" for k in QUERIES)
    return [
        Figure(
            f"search in {SESSIONS * EACH:,} messages by who sees 1 %, p95", quantile(few, 0.95), "ms",
            quantile(every, 0.95), "by who sees all", mark=2.0, judged=quantile(few, 0.95) / quantile(every, 0.95),
            note=f"medians 1 % / all in ms: {kinds}", detail={"few_ms": of_few, "all_ms": of_all},
        )
    ]  # fmt: skip

"""What it costs to put 10,000 messages behind a summary, beside a flag in each of their rows, and to load a talk with
100,000 of them behind one: by the product's own statements, in a database of its own."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg

from shared.request import blocks
from shared.store import transcript
from shared.store.pool import Connection
from shared.store.statements import compaction, one
from tests.bench.aside import database
from tests.bench.figures import Figure, middle
from tests.bench.house import House

DATABASE = "bench_compaction"
ARCHIVED, LONG, LIVE = 10_000, 100_000, 40
SESSIONS, ROUNDS = 5, 40
PREFIX = ("bench", blocks.join([blocks.text("You work at night.")]), 18, 0, "[]")
SEED = """
with p as (insert into principals (id, name, kind, role) values (%(id)s, %(name)s, 'person', 'member')),
x as (insert into prefixes (digest, system_text, stable_length, context_length, tools_text)
  values (%(digest)s, %(system)s, %(stable)s, 0, '[]') on conflict do nothing),
s as (insert into sessions (id, owner, provider, model, workspace, prefix)
  values (%(id)s, %(id)s, 'anthropic', 'm', '/none', %(digest)s))
insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, status, holder)
values (%(id)s, %(id)s, 'interactive', %(id)s, now(), 7200, 90, 'running', %(id)s)
"""
# The other way, on the same texts: a row says itself whether it still counts, an index finds those that do, and words
# are found through an index on the same table, as in the seeds' system.
FLAGGED = """
create table flagged (
  id bigint primary key, session uuid not null, role text not null, content text not null,
  active boolean not null default true, compacted boolean not null default false, words tsvector not null
);
create index flagged_active on flagged (session, active, id);
create index flagged_words on flagged using gin (words);
insert into flagged select m.id, m.session, m.role, m.content, true, false, to_tsvector('simple', m.content)
  from messages m;
"""
FLIP = "update flagged set active = false, compacted = true where session = %s and id between %s and %s"
SEARCH = """
insert into message_search (message, session, words, folded, made_by)
select id, session, to_tsvector('simple', content), lower(content), 1 from messages
"""
TOUCHED = """
select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_user_tables
where relname in ('messages', 'message_search')
"""


@dataclass(frozen=True, slots=True)
class Cost:
    ms: float
    wal: float
    """Bytes."""


def measure(house: House) -> list[Figure]:
    with database(house, DATABASE) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set statement_timeout = 0")
        connection.prepare_threshold = 0  # as the product's pools do
        sessions = [_session(connection, ARCHIVED) for _ in range(SESSIONS)]
        connection.execute(SEARCH.encode())
        for statement in FLAGGED.split(";\n"):
            if statement.strip():
                connection.execute(statement.encode())
        connection.execute("vacuum analyze")
        before = _touched(connection)
        ends = {session: _ends(connection, session, LIVE) for session in sessions}
        edits = [_cost(connection, partial(_summarise, connection, *at)) for at in ends.items()]
        touched = _touched(connection) - before
        flips = [_cost(connection, partial(_flip, connection, *at)) for at in ends.items()]
        loads = _loads(connection)
    return [*_costs(edits, flips, touched), *loads]


def _session(connection: Connection, messages: int) -> UUID:
    """A session whose turn runs, with so many messages of some lines each."""
    id_ = uuid4()
    digest, system, stable, _, _ = PREFIX
    connection.execute(
        SEED.encode(), {"id": id_, "name": str(id_), "digest": digest, "system": system, "stable": stable}
    )
    dice = random.Random(messages)
    words = ["".join(dice.choices("bdfgklmnprstaeiou", k=dice.randint(3, 9))) for _ in range(20_000)]
    with (
        connection.cursor() as cursor,
        cursor.copy("copy messages (session, turn, step, ordinal, author, role, content, fence) from stdin") as rows,
    ):
        for at in range(messages):
            text = " ".join(dice.choices(words, k=dice.randint(10, 120)))
            role = "assistant" if at % 2 else "user"
            rows.write_row(
                (id_, id_, at, 0, "model" if at % 2 else str(id_), role, blocks.join([blocks.text(text)]), 0)
            )
    return id_


def _ends(connection: Connection, session: UUID, live: int) -> tuple[int, int]:
    """The first and last message of what is put behind a summary: all but the opening and the newest ones."""
    ids = connection.execute("select id from messages where session = %s order by id", (session,)).fetchall()
    return ids[1][0], ids[-live][0]


def _flip(connection: Connection, session: UUID, ends: tuple[int, int]) -> None:
    connection.execute(FLIP.encode(), (session, *ends))


def _summarise(connection: Connection, session: UUID, ends: tuple[int, int]) -> None:
    first, last = ends
    digest, system, stable, context, tools = PREFIX
    dice = random.Random(first)
    words = " ".join("".join(dice.choices("bdfgklmnprstaeiou", k=dice.randint(3, 9))) for _ in range(1_500))
    values: dict[str, Any] = {
        "session": session, "turn": session, "fence": 0, "step": 1, "first": first, "last": last, "kept": None,
        "text": words, "cause": "bench", "arithmetic": json.dumps({}), "tokens_before": 900_000,
        "tokens_after": 40_000, "decision": "compact", "compact_last": "summary", "rest_s": 0.0, "regrow_to": 0,
        "digest": digest, "system_text": system, "stable_length": stable, "context_length": context,
        "tools_text": tools,
    }  # fmt: skip
    assert one(connection, compaction.COMMIT, values) is not None


def _cost(connection: Connection, act: Callable[[], object]) -> Cost:
    at = _value(connection, "select pg_current_wal_insert_lsn()::text")
    began = time.perf_counter()
    act()
    took = (time.perf_counter() - began) * 1_000
    return Cost(took, float(_value(connection, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)", at)))


def _touched(connection: Connection) -> int:
    """Rows written so far in the messages and in what search finds them by."""
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    return int(_value(connection, TOUCHED))


def _value(connection: Connection, query: str, *params: object) -> Any:
    row = connection.execute(query.encode(), params).fetchone()
    assert row is not None
    return row[0]


def _loads(connection: Connection) -> list[Figure]:
    """A conversation of forty messages that has a hundred thousand behind a summary, beside one of forty in all."""
    old, new = _session(connection, LONG), _session(connection, LIVE)
    _summarise(connection, old, _ends(connection, old, LIVE - 1))
    _summarise(connection, new, _ends(connection, new, LIVE - 1))  # of one message, so that both requests are alike
    connection.execute("vacuum analyze messages")
    took: dict[UUID, list[float]] = {old: [], new: []}
    for turn in range(ROUNDS + 2):
        for session in (old, new):
            began = time.perf_counter()
            transcript.project(connection, session, PREFIX[0])
            if turn > 1:  # the first ones warm
                took[session].append((time.perf_counter() - began) * 1_000)
    began = time.perf_counter()
    transcript.load_messages(connection, old)
    whole = (time.perf_counter() - began) * 1_000
    return [
        Figure(
            f"load of a conversation with {LONG:,} messages behind a summary, median", middle(took[old]), "ms",
            middle(took[new]), "with none", mark=1.2, judged=middle(took[old]) / middle(took[new]),
            note=f"reading all its messages instead: {whole:,.0f} ms", detail={"old": took[old], "new": took[new]},
        )
    ]  # fmt: skip


def _costs(edits: list[Cost], flips: list[Cost], touched: int) -> list[Figure]:
    ms, flip_ms = middle([one.ms for one in edits]), middle([one.ms for one in flips])
    wal, flip_wal = middle([one.wal for one in edits]), middle([one.wal for one in flips])
    what = f"{ARCHIVED:,} messages behind a summary"
    return [
        Figure(f"{what}: time, median of {SESSIONS}", ms, "ms", flip_ms, "a flag in each row"),
        Figure(
            f"{what}: WAL, median of {SESSIONS}", wal / 1e3, "kB", flip_wal / 1e3, "a flag in each row", mark=0.01,
            judged=wal / flip_wal, detail={"edits": [one.wal for one in edits], "flips": [one.wal for one in flips]},
        ),
        Figure(f"{what}: rows written to messages and search", touched, "rows", mark=0),
    ]  # fmt: skip

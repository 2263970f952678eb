"""The search index follows the transcript, whatever order its rows commit in, and one bad row costs only itself."""

from __future__ import annotations

import json
from typing import LiteralString
from uuid import UUID

import psycopg
import pytest

from scheduler.index import TEXT_BYTES, Indexer, words_of
from tests.scheduler.world import World

INSERT: LiteralString = (
    "insert into messages (session, turn, step, ordinal, author, role, content, fence) "
    "select t.session, t.id, 0, %s, 'model', 'assistant', %s, s.fence from turns t join sessions s on s.id = t.session "
    "where t.id = %s returning id"
)


def say(connection: psycopg.Connection, turn: UUID, ordinal: int, text: str) -> int:
    content = json.dumps([{"type": "text", "text": text}])
    row = connection.execute(INSERT, (ordinal, content, turn)).fetchone()
    assert row is not None
    return row[0]


def found(world: World, word: str) -> set[int]:
    rows = world.rows("select message from message_search where words @@ to_tsquery('simple', %s)", word)
    return {row["message"] for row in rows}


def mark(world: World) -> int:
    return world.row("select indexed_below from message_search_mark")["indexed_below"]


def test_messages_are_found_by_their_words(world: World) -> None:
    turn = world.admit()
    with world.connection() as connection:
        ids = [say(connection, turn, n, f"word{n} shared") for n in range(450)]
    with world.room() as room:
        assert Indexer(room).run() == 450
        assert Indexer(room).run() == 0
    assert found(world, "shared") == set(ids)
    assert found(world, "word7") == {ids[7]}


def test_a_message_that_commits_late_under_an_older_id_is_indexed_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.index.SETTLED_S", 0.0)
    slow, fast = world.admit(), world.admit()
    with world.room() as room, psycopg.connect(world.database_url) as late, world.connection() as prompt:
        prompt.execute("select 1")
        indexer = Indexer(room)
        indexer.run()
        older = say(late, slow, 0, "late")
        newer = say(prompt, fast, 0, "prompt")
        assert older < newer
        for _ in range(3):
            indexer.run()
        assert mark(world) <= older
        late.commit()
        for _ in range(3):
            indexer.run()
        assert found(world, "late") == {older}
        assert mark(world) > newer


def test_the_mark_stays_below_what_is_not_indexed_yet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.index.SETTLED_S", 0.0)
    monkeypatch.setattr("scheduler.index.BATCH", 2)
    monkeypatch.setattr("scheduler.index.PASSES", 1)
    turn = world.admit()
    with world.connection() as connection:
        ids = [say(connection, turn, n, "word") for n in range(5)]
    with world.room() as room:
        indexer = Indexer(room)
        for expected in (2, 4, 5):
            indexer.run()
            assert len(found(world, "word")) == expected
            assert mark(world) <= ids[0] or expected == 5
        indexer.run()
    assert mark(world) > ids[-1]


def test_a_row_that_is_refused_gets_a_placeholder_and_is_not_tried_again(world: World) -> None:
    turn = world.admit()
    world.do(
        "create function refuse() returns trigger language plpgsql as "
        "$$ begin if new.words @@ 'poison'::tsquery then raise exception 'too odd'; end if; return new; end $$"
    )
    world.do("create trigger refuse before insert on message_search for each row execute function refuse()")
    with world.connection() as connection:
        ids = [say(connection, turn, n, "poison" if n == 1 else "good") for n in range(3)]
    with world.room() as room:
        indexer = Indexer(room)
        assert indexer.run() == 3
        assert indexer.run() == 0
        assert room.counters["index.refused"] == 1
    assert found(world, "good") == {ids[0], ids[2]}
    assert world.row("select words::text as words from message_search where message = %s", ids[1]) == {"words": ""}


def test_a_megabyte_of_distinct_words_is_indexed_by_its_first_64_kilobytes(world: World) -> None:
    turn = world.admit()
    with world.connection() as connection:
        made = say(connection, turn, 0, " ".join(f"w{n:07}" for n in range(120_000)))
    with world.room() as room:
        assert Indexer(room).run() == 1
        assert room.counters["index.refused"] == 0
    assert found(world, "w0000001") == {made}
    assert found(world, "w0119999") == set()


WORDS = [
    ('[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"notes.md"}}]',
     "a\nread_file\nnotes.md"),
    ('[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"found"}]}]', "found"),
    ('[{"type":"image","source":{"data":"QUJD"}}]', ""),
    ('[{"type":"text","text":"nul\\u0000 and \\ud83d alone"}]', "nul\ufffd and \ufffd alone"),
    ("not json at all", "not json at all"),
    ('"plain"', "plain"),
    ("[]", ""),
]  # fmt: skip


@pytest.mark.parametrize(("content", "words"), WORDS)
def test_what_people_read_becomes_words(content: str, words: str) -> None:
    assert words_of(content) == words


def test_words_are_bounded_in_bytes_and_stay_whole_characters() -> None:
    text = words_of(json.dumps([{"type": "text", "text": "\u20ac" * TEXT_BYTES}], ensure_ascii=False))
    assert TEXT_BYTES - 3 <= len(text.encode()) <= TEXT_BYTES
    assert set(text) == {"\u20ac"}

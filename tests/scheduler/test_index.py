"""The search index follows the transcript, whatever order its rows commit in, and one bad row costs only itself."""

from __future__ import annotations

import json
from typing import LiteralString
from uuid import UUID

import psycopg
import pytest

from scheduler.index import Indexer
from shared import words
from shared.readable import TEXT_BYTES, indexed, text_of
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


def test_what_a_scheduler_of_the_release_before_indexed_is_made_again(world: World) -> None:
    """It writes words of another cut and no text, also beside ours while the fleet is upgraded."""
    turn = world.admit()
    with world.connection() as connection:
        ids = [say(connection, turn, n, "shared/store/pool.py") for n in range(3)]
        connection.execute(
            "insert into message_search (message, session, words) "
            "select id, session, to_tsvector('simple', content) from messages where id = any(%s)",
            (ids[:2],),
        )
    with world.room() as room:
        assert Indexer(room).run() == 1
        assert Indexer(room).run() == 2
        assert Indexer(room).run() == 0
    assert found(world, "pool") == set(ids)
    rows = world.rows("select folded, made_by from message_search")
    assert rows == [{"folded": "shared/store/pool.py", "made_by": words.VERSION}] * 3


def test_a_text_with_what_its_syntax_is_made_of_is_indexed_as_it_stands(world: World) -> None:
    turn = world.admit()
    text = "it's a \\ 'quoted':1A & !word | \u0000 \x1e 数据库 <-> :*"
    with world.connection() as connection:
        made = say(connection, turn, 0, text)
    with world.room() as room:
        assert Indexer(room).run() == 1
        assert room.counters["index.refused"] == 0
    assert found(world, "quoted") == {made}
    assert found(world, "'数据' <-> '据库'") == {made}


BODIES = [
    ('[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"notes.md"}}]',
     ["a", "read_file\nnotes.md"]),
    ('[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"found"}]}]', ["found"]),
    ('[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"cut\\noff \\u4e', ["cut\noff "]),
    ('[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"two \\\\', ["two \\"]),
    ('[{"type":"text","text":"cut off', ["cut off"]),
    ('[{"type":"image","source":{"data":"QUJD"}},{"type":"text","text":"one\\u001e more"}]', ["", "one  more"]),
    ('[{"type":"text","text":"nul\\u0000 and \\ud83d alone"}]', ["nul\ufffd and \ufffd alone"]),
    ("not json at all", ["not json at all"]),
    ('"plain"', ["plain"]),
    ("[]", [""]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "records"), BODIES, ids=range(len(BODIES)))
def test_what_people_read_of_each_block_is_a_record_of_its_own(content: str, records: list[str]) -> None:
    assert text_of(content).split(words.RECORD) == records


def test_a_persons_words_count_more_than_a_models_and_those_more_than_what_tools_said() -> None:
    said = '[{"type":"text","text":"word"}]'
    result = '[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"word"}]}]'
    call = '[{"type":"tool_use","id":"t1","name":"word","input":{}}]'
    person = "019af000-0000-7000-8000-000000000001"
    assert indexed(said, person, "user").words == "'word':1A"
    assert indexed(said, "model", "assistant").words == "'word':1B"
    assert indexed(call, "model", "assistant").words == "'word':1C"
    assert indexed(result, "tool", "user").words == "'word':1D"
    assert indexed(said, "child", "user").words == "'word':1D"


def test_a_text_is_bounded_in_bytes_and_stays_whole_characters() -> None:
    block = {"type": "text", "text": "\u20ac" * TEXT_BYTES}
    text = text_of(json.dumps([block, block], ensure_ascii=False))
    assert TEXT_BYTES - 3 <= len(text.encode()) <= TEXT_BYTES + 1
    assert set(text) == {"\u20ac", words.RECORD}

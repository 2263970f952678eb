"""What was said is found by those who may see it, in any script, and by nobody else; hiding it costs no index a row."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from api.reads import sessions
from deploy.local.servers import Servers
from shared import words
from shared.errors import Refused
from shared.store.search import Scope
from tests.api.conftest import fresh_database
from tests.scheduler.world import World
from tests.shrink.recalled import CHILD, PEOPLE, PRIVATE, TEAM, Said, saying


@pytest.fixture(scope="module")
def said(servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Said]:
    home: Path = tmp_path_factory.mktemp("home")
    with fresh_database(servers, template) as url, saying(World(url, servers.valkey.url, home)) as made:
        yield made


@pytest.fixture(scope="module")
def house(said: Said) -> dict[str, UUID]:
    """Three people and a session of each kind, each of which holds the word `canary` and its own name."""
    anna, ben, cleo = (said.person(name) for name in ("anna", "ben", "cleo"))
    made = {
        "annas": said.session(anna), "bens": said.session(ben), "team": said.session(cleo, TEAM),
        "anna+ben": said.session(anna, PEOPLE, ben), "ben+cleo": said.session(ben, PEOPLE, cleo),
        "all three": said.session(cleo, PEOPLE, anna, ben),
    }  # fmt: skip
    for name, session in made.items():
        said.say(session, f"the canary of {name}")
    said.index()
    return made | {"anna": anna, "ben": ben, "cleo": cleo}


SEES = {
    "annas": {"annas", "team", "anna+ben", "all three"},
    "bens": {"bens", "team", "anna+ben", "ben+cleo", "all three"},
    "team": {"team"},
    "anna+ben": {"team", "anna+ben", "all three"},
    "ben+cleo": {"team", "ben+cleo", "all three"},
    "all three": {"team", "all three"},
}


@pytest.mark.parametrize("asking", SEES)
def test_a_session_finds_what_each_of_its_readers_may_see(said: Said, house: dict[str, UUID], asking: str) -> None:
    names = {house[name]: name for name in SEES}
    scope = said.eyes(house[asking])
    assert {names[hit.session] for hit in said.find(scope, "canary").hits} == SEES[asking]
    for within, name in names.items():
        assert bool(said.found(scope, "canary", within=within)) == (name in SEES[asking])


def test_for_one_reader_search_and_the_api_say_the_same_of_every_session(said: Said, house: dict[str, UUID]) -> None:
    for who, name in itertools.product(("anna", "ben", "cleo"), SEES):
        hits = said.found(house[who], "canary", within=house[name])
        try:
            sessions.must_see(said.connection, house[name], house[who])
            seen = True
        except Refused:
            seen = False
        assert bool(hits) == seen, (who, name)


def test_nobody_in_particular_sees_only_what_the_team_does(said: Said, house: dict[str, UUID]) -> None:
    assert {hit.session for hit in said.find(Scope(()), "canary").hits} == {house["team"]}
    assert {hit.session for hit in said.find(uuid4(), "canary of annas").hits} == {house["team"]}


def test_what_was_taken_back_is_gone_at_once_and_back_when_that_is_undone(said: Said) -> None:
    anna = said.person()
    session = said.session(anna)
    first, second, third = said.say(session, "the heron stands", "a hidden heron", "no bird here")
    said.index()
    assert said.find(anna, "heron", within=session).hits[0].more == 1
    rewind = said.edit(session, "rewind", second, third)
    (hit,) = said.find(anna, "heron", within=session).hits
    assert (hit.message, hit.more, hit.after) == (first, 0, None)
    assert said.found(anna, "hidden") == said.found(anna, "idde") == said.found(anna, "hidden or not") == []
    said.edit(session, "restore", rewind)
    assert set(said.found(anna, "heron", within=session)) == {first, second}


def test_what_was_delegated_goes_and_comes_with_the_call_that_delegated_it(said: Said) -> None:
    """A child's words and its own child's; what a person says to a child later stays."""
    anna = said.person()
    sessions = [said.session(anna), said.session(anna, kind=CHILD), said.session(anna, kind=CHILD)]
    turns = [said.turn(session) for session in sessions]
    messages = [said.say(session, "a dunlin", turn=turn)[0] for session, turn in zip(sessions, turns, strict=True)]
    for parent, child in pairwise(turns):
        said.connection.execute(
            "update turns set parent = %s, parent_step = 1, parent_ordinal = 1, child_index = 0 where id = %s",
            (parent, child),
        )
    (later,) = said.say(sessions[2], "a dunlin")
    said.index()
    assert set(said.found(anna, "dunlin")) == {*messages[:2], later}
    rewind = said.edit(sessions[0], "rewind", messages[0], messages[0])
    assert said.found(anna, "dunlin") == said.found(anna, "unli") == [later]
    assert said.find(anna, "dunlin").hits[0].more == 0
    said.edit(sessions[0], "restore", rewind)
    assert set(said.found(anna, "dunlin")) == {*messages[:2], later}


def test_what_a_summary_stands_for_is_found_and_marked(said: Said) -> None:
    anna = said.person()
    session = said.session(anna, title="the pond")
    ids = said.say(session, "a cormorant dives", "it comes up", "and flies")
    said.index()
    said.edit(session, "summary", ids[0], ids[1])
    (hit,) = said.find(anna, "cormorant").hits
    assert (hit.session, hit.title, hit.message, hit.covered, hit.before) == (session, "the pond", ids[0], True, None)
    assert hit.after is not None
    assert (hit.after.message, hit.after.text) == (ids[1], "it comes up")
    assert not said.find(anna, "flies").hits[0].covered


TEXTS = {
    "chinese": "我们决定把数据库连接的重试预算设为三次", "japanese": "明日の大阪の天気予報はデータベースにある",
    "korean": "데이터베이스를 다시 시작했다", "thai": "ฐานข้อมูลเริ่มใหม่แล้ว", "russian": "Мы приняли решения по бюджету",
    "german": "Die Größe des Puffers", "code": "def stable_prefix_len(x): see shared/store/pool.py:42", "english":
    "Nightshift keeps the retry budget at three", "wide": "ＡＢＣ１２３ と ﾃﾞｰﾀ", "dotted": "version 1e2-alpha+7",
}  # fmt: skip
ASKED = [
    ("数据库", "chinese"), ("重试 预算", "chinese"), ("库", "chinese"), ("三次", "chinese"), ("次", "chinese"),
    ("データベース", "japanese"), ("大阪", "japanese"), ("天気予報", "japanese"), ("ﾃﾞｰﾀﾍﾞｰｽ", "japanese"),
    ("데이터베이스", "korean"), ("시작", "korean"), ("ข้อมูล", "thai"), ("решен", "russian"), ("БЮДЖЕТУ", "russian"),
    ("grösse", "german"), ("PUFFER", "german"), ("GRÖSSE", "german"), ("stable_prefix_len", "code"),
    ("prefix_len", "code"), ("pool.py", "code"), ("store/pool", "code"), ("able_pref", "code"),
    ("ightshif", "english"), ("NIGHTSHIFT", "english"),
    ('"retry budget"', "english"), ("budget retry", "english"), ("what is the retry budget", "english"),
    ("abc123", "wide"), ("データ", "wide"), ("1e2-alpha", "dotted"),
]  # fmt: skip


@pytest.fixture(scope="module")
def scripts(said: Said) -> tuple[UUID, dict[int, str]]:
    reader = said.person()
    messages = {said.say(said.session(reader), text)[0]: name for name, text in TEXTS.items()}
    said.index()
    return reader, messages


@pytest.mark.parametrize(("query", "name"), ASKED, ids=range(len(ASKED)))
def test_every_script_is_found(said: Said, scripts: tuple[UUID, dict[int, str]], query: str, name: str) -> None:
    reader, messages = scripts
    assert messages[said.found(reader, query)[0]] == name


@pytest.mark.parametrize("query", ['"budget retry"', "据数", "zzyzzyva", '"库 数据"'])
def test_what_was_not_said_like_that_is_not_found(said: Said, scripts: tuple[UUID, dict[int, str]], query: str) -> None:
    assert said.found(scripts[0], query) == []


HOSTILE = [
    "& | ! <-> :* ( )", "'; drop table messages; --", "a' or '1'='1", "\\", "%", "_", "x\x00y", "\ud800word", "a",
    "the of and", '"unclosed', '""', "word " * 400, "'" * 500 + "x", "a:*b & !c", "<script>x</script>", "((((((",
    "x" * 2_000,
    "\u202eword", "数" * 1_000, "e\u0301" * 500, "word\n\r\tword", "-word -rf --all", "OR AND NOT", "\ufdfa" * 500,
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_no_words_are_an_operator_or_a_fault(said: Said, scripts: tuple[UUID, dict[int, str]], query: str) -> None:
    if words.ask(query) is not None:
        assert not said.find(scripts[0], query).cut


def test_a_person_counts_more_than_a_model_and_that_more_than_a_tool_and_all_more_than_some(said: Said) -> None:
    anna = said.person()
    tool, model, person, part, some = (said.session(anna) for _ in range(5))
    said.say(person, "the osprey returns in spring")
    said.say(model, "the osprey returns in spring", author="model")
    said.say(tool, "the osprey returns in spring", author="tool")
    said.say(part, "ospreys, springtime")
    said.say(some, "osprey only")
    said.index()
    assert [hit.session for hit in said.find(anna, "osprey spring").hits] == [person, model, tool, part, some]


def test_each_session_gives_one_hit_and_pages_follow_without_gap_or_repeat(said: Said) -> None:
    anna = said.person()
    made = [said.session(anna) for _ in range(7)]
    for session in made:
        said.say(session, *(f"a plover, {n}" for n in range(3)))
    said.index()
    pages = [said.find(anna, "plover", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [len(page.hits) for page in pages] == [3, 3, 1, 0]
    assert [page.following for page in pages] == [True, True, False, False]
    hits = [hit for page in pages for hit in page.hits]
    assert {hit.session for hit in hits} == set(made)
    assert [hit.more for hit in hits] == [2] * 7
    inside = said.find(anna, "plover", within=made[0])
    assert [(hit.session, hit.message) for hit in inside.hits] == [
        (made[0], hit.message) for hit in sorted(inside.hits, key=lambda one: -one.message)
    ]
    assert len(inside.hits) == 3


def test_the_question_does_not_find_itself(said: Said) -> None:
    anna = said.person()
    session = said.session(anna)
    (earlier,) = said.say(session, "the bittern booms")
    turn = said.turn(session)
    said.say(session, "search for the bittern", turn=turn)
    said.index()
    scope = said.eyes(session)
    (since,) = said.row("select min(id) from messages where turn = %s", turn)
    assert said.found(scope, "bittern", within=session) != [earlier]
    assert said.found(Scope(scope.readers, session, since), "bittern", within=session) == [earlier]


def test_a_long_message_shows_the_place_and_names_its_block(said: Said) -> None:
    anna = said.person()
    session = said.session(anna)
    (message,) = said.say(session, "filler words " * 3_000 + "the avocet wades " + "more words " * 1_000, author="tool")
    said.index()
    (hit,) = said.find(anna, "avocet").hits
    assert "the avocet wades" in hit.snippet
    assert len(hit.snippet) <= 400
    assert hit.handle == f"result:{message}.0"


def test_what_there_is_no_time_for_is_said(said: Said, scripts: tuple[UUID, dict[int, str]]) -> None:
    found = said.find(scripts[0], "budget", budget_s=0.0)
    assert (found.hits, found.cut) == ((), True)
    assert said.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_search_waits_for_no_step_and_leaves_nothing_set(said: Said, scripts: tuple[UUID, dict[int, str]]) -> None:
    def settings() -> list[tuple[str, str]]:
        return said.connection.execute(
            "select name, setting from pg_settings where name in ('statement_timeout', 'enable_seqscan', 'jit',"
            " 'transaction_read_only', 'plan_cache_mode') order by name"
        ).fetchall()

    before = settings()
    with psycopg.connect(said.world.database_url) as holder:
        holder.execute("select 1 from sessions for update")
        assert said.found(scripts[0], "ightshif") != []
    assert settings() == before


WRITES = """
select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) from pg_stat_user_tables
where relname in ('message_search', 'message_search_mark', 'messages')
"""
EDIT = """
explain (analyze, wal, costs off, timing off, summary off, buffers off)
insert into edits (session, kind, first, last, text, cause, fence) values (%s, %s, %s, %s, 'a summary', 'test', 0)
"""


def test_a_summary_and_a_rewind_of_10_000_messages_write_a_row_each_and_touch_no_search_index(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = said.person()
    session = said.session(anna, PRIVATE)
    turn = said.turn(session)
    said.connection.execute(
        "insert into messages (session, turn, step, ordinal, author, role, content, fence)"
        " select %s, %s, 2, n, 'model', 'assistant', '[{\"type\":\"text\",\"text\":\"a stint ' || n || '\"}]', 0"
        " from generate_series(1, 10000) n",
        (session, turn),
    )
    monkeypatch.setattr("scheduler.index.PASSES", 2)
    said.index()
    first, last = said.row("select min(id), max(id) from messages where turn = %s", turn)
    assert said.find(anna, "stint").hits[0].more == 399

    def writes() -> object:
        said.connection.execute("select pg_stat_force_next_flush()")
        return said.row(WRITES)

    before = writes()
    for kind in ("summary", "rewind"):
        plan = said.connection.execute(EDIT.encode(), (session, kind, first, last)).fetchall()
        log = sum(int(size) for row in plan for size in re.findall(r"WAL: .*?bytes=(\d+)", row[0]))
        assert 0 < log < 1_000 * (1 + sum("fpi=" in row[0] for row in plan) * 30), plan
        assert [hit.covered for hit in said.find(anna, "stint").hits] == ([True] if kind == "summary" else [])
    assert writes() == before

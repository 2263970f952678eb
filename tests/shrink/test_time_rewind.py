"""Taking back and bringing back: what the model sees, what the provider still reads, and what is kept as it was."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from shared.errors import Refused
from shared.request.edits import EditRow
from shared.store import intake
from shared.store.statements import every, schedule
from shared.values import EventKind, TurnClass
from tests.api.conftest import fresh_database
from tests.ground import Ground, Rehearsal, ground
from tests.shrink import travel
from tests.shrink.conftest import Bodies, assert_replayed
from tests.shrink.travel import broken, column, edited, messages_of, restored, rewound, said, shown

CANARY = "the heron stands at 4711"
LONG = "long " * 2000
CACHE = ("last_breakpoint_message", "chain_blocks", "chain_digest", "baseline_estimate", "baseline_billed")


@pytest.fixture(scope="module")
def worker(
    servers: Servers, template: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    with (
        fresh_database(servers, template) as url,
        ground(url, servers.valkey.url, provider.url, tmp_path_factory.mktemp("home")) as made,
    ):
        yield made


def test_what_was_taken_back_is_in_no_later_request_and_what_stays_is_read_from_the_cache(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    said(worker, provider, session, f"first {LONG}", "one")
    second = said(worker, provider, session, f"second {CANARY}", f"I note: {CANARY}")
    said(worker, provider, session, "third", "three")
    before = len(bodies(session))
    assert CANARY.encode() in bodies(session)[-1]

    came = rewound(worker, session, second)

    assert shown(worker, session) == [f"first {LONG}", "one"]
    assert came["first"] == messages_of(worker, second)[0]
    said(worker, provider, session, "fourth", "four")
    said(worker, provider, session, "fifth", "five")
    later = bodies(session)[before:]
    assert len(later) == 2
    for body in later:
        assert CANARY.encode() not in body
        assert b"third" not in body
        assert b"first" in body
    call = worker.rows("select * from calls where session = %s order by seq", session)[-2]
    assert call["cache_read_tokens"] > 2000
    assert call["cache_write_5m_tokens"] < 500
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_the_row_knows_of_its_cache_what_it_knew_before_what_was_taken_back(
    worker: Ground, provider: Rehearsal
) -> None:
    """The last breakpoint before the cut, the chain from there, the size as it was billed then."""
    session = worker.session()
    tools = [{"name": "list_files", "input": {"path": "."}}]
    said(worker, provider, session, f"first {LONG}", {"text": "I look.", "tools": tools}, "one")
    known = column(worker, session, *CACHE)
    second = said(worker, provider, session, "second", {"text": "Again.", "tools": tools}, "two")
    said(worker, provider, session, "third", "three")
    warm: datetime = column(worker, session, "prefix_warm_until")["prefix_warm_until"]
    assert column(worker, session, *CACHE) != known

    came = rewound(worker, session, second)

    assert column(worker, session, *CACHE) == known
    assert column(worker, session, "prefix_warm_until")["prefix_warm_until"] < warm
    billed = known["baseline_billed"]
    assert billed < came["tokens_after"] < billed + 100 < came["tokens_before"]


def test_a_restore_brings_everything_back_and_the_cache_with_it(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    said(worker, provider, session, f"first {LONG}", "one")
    second = said(worker, provider, session, f"second {LONG}", "two")
    said(worker, provider, session, "third", "three")
    stood, known = shown(worker, session), column(worker, session, *CACHE)
    rewound(worker, session, second)

    came = restored(worker, session)

    assert came["tokens_before"] < came["tokens_after"]
    assert shown(worker, session) == stood
    assert column(worker, session, *CACHE) == known
    said(worker, provider, session, "fourth", "four")
    call = worker.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert call["cache_read_tokens"] > 4000
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))
    with pytest.raises(Refused, match="nothing is taken back"):
        travel.ask_restore(worker, session)


def test_what_is_brought_back_stands_where_it_stood_before_what_was_said_since(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    rewound(worker, session, second)
    said(worker, provider, session, "other", "else")
    restored(worker, session)
    assert shown(worker, session) == ["first", "one", "second", "two", "other", "else"]
    said(worker, provider, session, "last", "end")
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_of_two_rewinds_each_is_undone_by_itself(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    third = said(worker, provider, session, "third", "three")
    inner = rewound(worker, session, third)
    said(worker, provider, session, "fourth", "four")
    rewound(worker, session, second)
    with pytest.raises(Refused, match="taken back already"):
        travel.ask_rewind(worker, session, third)
    restored(worker, session)
    assert shown(worker, session) == ["first", "one", "second", "two", "fourth", "four"]
    restored(worker, session, inner["edit"])
    assert shown(worker, session) == ["first", "one", "second", "two", "third", "three", "fourth", "four"]


def test_a_summary_that_reaches_past_the_cut_is_void_and_the_raw_messages_before_it_stand_again(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    third = said(worker, provider, session, "third", "three")
    span = messages_of(worker, first)[0], messages_of(worker, third)[1]
    edited(worker, session, EditRow(0, "summary", *span, text="They counted to three."))
    worker.execute("update sessions set verdict_due = true where id = %s", session)
    said(worker, provider, session, "fourth", "four")
    assert shown(worker, session) == ["They counted to three.", "fourth", "four"]

    rewound(worker, session, second)

    assert shown(worker, session) == ["first", "one"]
    assert column(worker, session, "verdict_due") == {"verdict_due": False}
    said(worker, provider, session, "fifth", "five")
    restored(worker, session)
    assert shown(worker, session) == ["They counted to three.", "fourth", "four", "fifth", "five"]
    said(worker, provider, session, "sixth", "six")
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_a_summary_that_was_made_before_the_cut_stands_and_its_verdict_is_still_due(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    edited(worker, session, EditRow(0, "summary", *messages_of(worker, first), text="They began."))
    second = said(worker, provider, session, "second", "two")
    worker.execute(
        "update sessions set verdict_due = true, meter = 5, compact_meter = 6, junk_tokens = 7, regrow_to = 8,"
        " ineffective_strikes = 1, fallback_streak = 1 where id = %s",
        session,
    )
    rewound(worker, session, second)
    assert shown(worker, session) == ["They began."]
    names = (
        "verdict_due",
        "meter",
        "compact_meter",
        "junk_tokens",
        "regrow_to",
        "ineffective_strikes",
        "fallback_streak",
    )
    assert list(column(worker, session, *names).values()) == [True, 0, 0, 0, 0, 1, 1]


def test_a_summary_whose_writer_had_read_what_is_taken_back_is_void_though_it_ends_before_it(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """The summariser reads the whole request, its tail too, and may tell of what it read there."""
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, f"second {CANARY}", "two")
    span = messages_of(worker, first)
    edited(worker, session, EditRow(0, "summary", *span, text=f"They began, and later noted: {CANARY}."))
    rewound(worker, session, second)
    said(worker, provider, session, "third", "three")
    assert CANARY.encode() not in bodies(session)[-1]
    assert shown(worker, session) == ["first", "one", "third", "three"]


def test_where_the_past_before_the_cut_was_edited_since_nothing_is_pinned_that_was_never_sent(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """The newest call before the cut went out without the stub, so the provider keeps nothing that begins like what
    stands now; an older one, whose request ends before the stub, may."""
    session = worker.session()
    said(worker, provider, session, f"first {LONG}", "one")
    known = column(worker, session, *CACHE)
    second = said(worker, provider, session, f"second {LONG}", "two")
    third = said(worker, provider, session, "third", "three")
    edited(worker, session, EditRow(0, "stub", messages_of(worker, second)[0], block=0, text="[second]"))
    said(worker, provider, session, "fourth", "four")

    rewound(worker, session, third)

    assert shown(worker, session) == [f"first {LONG}", "one", "[second]", "two"]
    assert column(worker, session, *CACHE) == known
    said(worker, provider, session, "fifth", "five")
    call = worker.one("select * from calls where session = %s order by seq desc limit 1", session)
    assert call["cache_read_tokens"] > 2000
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_a_rewind_to_the_first_turn_leaves_the_system_prompt_and_no_baseline_of_another_size(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    session = worker.session()
    first = said(worker, provider, session, f"first {LONG}", "one")
    came = rewound(worker, session, first)
    assert shown(worker, session) == []
    row = column(worker, session, "chain_digest", "last_breakpoint_message", "prefix_warm_until")
    assert list(row.values()) == [None, None, None]
    assert came["tokens_after"] < came["tokens_before"] - 2000
    said(worker, provider, session, "afresh", "one again")
    assert b"long long" not in bodies(session)[-1]
    assert_replayed(worker, session, bodies(session))


def test_signed_reasoning_before_the_cut_stays_and_what_comes_back_comes_without(
    worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    """The provider checks each signature against the prefix that it was made for, and refuses what does not fit."""
    session = worker.session(model="claude-opus-5-5")
    tools = [{"name": "list_files", "input": {"path": "."}}]
    said(worker, provider, session, "first", {"thinking": "hm", "text": "I look.", "tools": tools}, "one")
    second = said(worker, provider, session, "second", {"thinking": "ha", "text": "Again.", "tools": tools}, "two")
    rewound(worker, session, second)
    said(worker, provider, session, "third", "three")
    kept = [b'"type":"thinking"' in body for body in bodies(session)]
    assert kept == [False, True, True, True, True]
    signed = bodies(session)[-1].count(b'"type":"thinking"')
    restored(worker, session)
    said(worker, provider, session, "fourth", "four")
    assert bodies(session)[-1].count(b'"type":"thinking"') == signed
    assert {row["status"] for row in worker.rows("select status from calls where session = %s", session)} == {"settled"}
    assert broken(worker, session) == 0
    assert_replayed(worker, session, bodies(session))


def test_what_is_asked_first_is_done_first_and_what_was_said_meanwhile_comes_behind(
    worker: Ground, provider: Rehearsal
) -> None:
    session = worker.session()
    said(worker, provider, session, "first", "one")
    second = said(worker, provider, session, "second", "two")
    made = travel.ask_rewind(worker, session, second)
    provider.script([{"text": "three"}], session=str(session))
    worker.turn(session, "third")
    assert worker.look_once(TurnClass.INTERACTIVE) == 0, "the rewind stands before it"
    worker.look()
    assert travel.came_of(worker, session, made)["outcome"] == {"result": "done"}
    assert shown(worker, session) == ["first", "one", "third", "three"]


def test_a_rewind_whose_turn_was_cancelled_is_not_done_by_anybody(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    made = travel.ask_rewind(worker, session, first)
    worker.execute(
        "update turns set status = 'cancelled', finished_at = now() where id = %s", made.turn
    )  # fmt: skip
    said(worker, provider, session, "second", "two")
    assert shown(worker, session) == ["first", "one", "second", "two"]
    assert travel.came_of(worker, session, made)["outcome"] is None
    worker.execute("update inbox set created_at = created_at - interval '1 minute' where id = %s", made.request)
    idle = worker.database.read(lambda c: every(c, schedule.IDLE_INBOX, {"limit": 100}))
    assert session not in [row["session"] for row in idle], "the sweep admits no housekeeping for it, again and again"
    rewound(worker, session, first)
    assert shown(worker, session) == []


def test_what_was_delivered_meanwhile_is_not_taken_back(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    made = travel.ask_rewind(worker, session, first)
    payload = '[{"type":"text","text":"the brief"}]'
    worker.database.read(lambda c: intake.deliver(c, session, worker.person, payload, f"brief {session}"))
    worker.look()
    assert travel.came_of(worker, session, made)["outcome"] == {"result": "done"}
    assert shown(worker, session) == ["the brief"]


def test_the_end_of_a_rewind_is_told_in_its_turns_events(worker: Ground, provider: Rehearsal) -> None:
    session = worker.session()
    first = said(worker, provider, session, "first", "one")
    came = rewound(worker, session, first)
    (told,) = [one for one in worker.events(came["turn"]) if one.kind == EventKind.CONTEXT_EDITED]
    assert told.data | {"step": 0, "fence": 0} == {
        "step": 0, "fence": 0, "request": str(came["id"]), "kind": "rewind", "edit": came["edit"],
        "tokens_before": came["tokens_before"], "tokens_after": came["tokens_after"],
    }  # fmt: skip


def test_a_rewind_in_a_session_that_no_model_has_seen_is_an_edit_like_any_other(worker: Ground) -> None:
    """A delivery stands there, and nothing was ever sent."""
    session: UUID = worker.session()
    payload = '[{"type":"text","text":"the brief"}]'
    worker.database.read(lambda c: intake.deliver(c, session, worker.person, payload, f"brief {session}"))
    worker.look()
    turn: UUID = worker.one("select turn from messages where session = %s", session)["turn"]
    came = rewound(worker, session, turn)
    assert (came["tokens_before"], came["tokens_after"]) == (0, 0)
    state = worker.one("select active, compacted from message_state where session = %s", session)
    assert state == {"active": False, "compacted": False}

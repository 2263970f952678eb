"""The view that search and the page read says of each message what the projection says of it, whatever was edited."""

from __future__ import annotations

import random
from itertools import pairwise
from uuid import UUID

from shared.request import edits
from shared.request.edits import Standing
from shared.store import transcript
from shared.store.pool import Connection
from tests.store.conftest import Rows

WORDS = {Standing.LIVE: (True, False), Standing.COVERED: (False, True), Standing.REWOUND: (False, False)}
HISTORIES = 60


def test_the_view_and_the_projection_agree_on_what_stands_after_any_edits(rows: Rows) -> None:
    dice = random.Random(4)
    seen: set[Standing] = set()
    for _ in range(HISTORIES):
        seen |= _agree(rows, dice)
    assert seen == set(Standing)


def _agree(rows: Rows, dice: random.Random) -> set[Standing]:
    """One session in which messages and edits come in turns."""
    session = rows.session()
    turn = rows.turn(session)
    messages: list[int] = []
    for at in range(12):
        rows.message(rows.connection, session, turn, 0, ordinal=at)
        messages.append(rows.value("select max(id) from messages where session = %s", session))
        if at > 2 and dice.random() < 0.6:
            _edit(rows.connection, session, messages, dice)
    past = edits.apply(transcript.load_edits(rows.connection, session))
    told = rows.connection.execute(
        "select id, active, compacted from message_state where session = %s order by id", (session,)
    ).fetchall()
    assert told == [(id_, *WORDS[past.standing(id_)]) for id_ in messages]
    return {past.standing(id_) for id_ in messages}


def _edit(connection: Connection, session: UUID, messages: list[int], dice: random.Random) -> None:
    rewinds = [one.id for one in transcript.load_edits(connection, session) if one.kind == "rewind"]
    kind = dice.choice(["summary", "rewind", "rewind", "restore"] if rewinds else ["summary", "rewind"])
    first = dice.randrange(len(messages))
    last = dice.randrange(first, len(messages))
    found = (dice.choice(rewinds), None) if kind == "restore" else (messages[first], messages[last])
    kept = dice.sample(messages[first : last + 1], 1) if kind == "summary" and dice.random() < 0.5 else None
    connection.execute(
        "insert into edits (session, kind, first, last, kept, cause, fence) values (%s, %s, %s, %s, %s, 'test', 0)",
        (session, kind, *found, kept),
    )


def test_what_was_delegated_is_taken_back_and_brought_back_with_the_call_that_delegated_it(rows: Rows) -> None:
    """A child's transcript holds the words of its parent. What a person said to a child later is not taken back."""
    above = [(session, rows.turn(session)) for session in (rows.session(), rows.session(), rows.session())]
    for session, turn in above:
        rows.message(rows.connection, session, turn, 0)
    for parent, child in pairwise(turn for _, turn in above):
        rows.connection.execute(
            "update turns set parent = %s, parent_step = 1, parent_ordinal = 1, child_index = 0 where id = %s",
            (parent, child),
        )
    leaf, _ = above[-1]
    rows.message(rows.connection, leaf, rows.turn(leaf), 0)
    insert = (
        "insert into edits (session, kind, first, last, cause, fence)"
        " select %s, %s, coalesce(%s, min(m.id)), max(m.id), 'test', 0 from messages m where m.session = %s"
        " returning id"
    )
    top, _ = above[0]
    (rewind,) = rows.connection.execute(insert, (top, "rewind", None, top)).fetchone() or (0,)
    query = "select active from message_state where session = any(%s) order by id"
    sessions = [session for session, _ in above]
    assert rows.connection.execute(query, (sessions,)).fetchall() == [(False,), (False,), (False,), (True,)]
    rows.connection.execute(insert, (top, "restore", rewind, top))
    assert rows.connection.execute(query, (sessions,)).fetchall() == [(True,)] * 4

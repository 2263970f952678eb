"""The view that search and the page read says of each message what the projection says of it, whatever was edited."""

from __future__ import annotations

import random
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

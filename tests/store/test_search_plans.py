"""A search's plans, for what it asks and with the settings that it runs under, on tables that are large."""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID, uuid4

from shared import words
from shared.store import search
from tests.store import test_statements
from tests.store.conftest import Rows

full = test_statements.full
FILL: LiteralString = """
insert into message_search (message, session, words, folded, made_by)
select id, session, array_to_tsvector(array['common', 'rare' || id]), 'common rare' || id, 1 from messages
"""


def plans(rows: Rows, query: str, only: list[UUID] | None) -> dict[str, str]:
    """By statement: the plan of its first stretch."""
    asked = words.ask(query)
    assert asked is not None
    newest = rows.value("select max(message) from message_search")
    found: dict[str, str] = {}
    for statement, question in search.passes(asked, newest, few=only is not None):
        values: dict[str, Any] = {
            "readers": [uuid4()], "own": None, "since": search.NEVER, "only": only, "single": False, **question,
        }  # fmt: skip
        with rows.connection.transaction():
            rows.connection.execute(search.SETTINGS, {"ms": "10000"})
            plan = rows.connection.execute(b"explain " + statement.text.encode(), values).fetchall()
        found.setdefault(statement.name, "\n".join(row[0] for row in plan))
    return found


def test_words_are_looked_up_and_never_read_through_and_of_few_sessions_only_theirs_are_looked_into(full: Rows) -> None:
    full.connection.execute(FILL)
    full.connection.execute("vacuum analyze message_search")
    for query in ("rare7", "common", "rare7 common", "neither of them"):
        shown = plans(full, query, None)
        assert set(shown) == {"find_words", "find_parts"}
        assert "message_search_words" in shown["find_words"]
        assert not [plan for plan in shown.values() if "Seq Scan" in plan]
    assert "message_search_folded" in plans(full, "rare7", None)["find_parts"]
    few = [row[0] for row in full.connection.execute("select id from sessions limit 5").fetchall()]
    shown = plans(full, "rare7", few)
    assert set(shown) == {"find_words", "find_parts_of_few"}
    assert "message_search_of_session" in shown["find_parts_of_few"]
    assert not [plan for plan in shown.values() if "Seq Scan" in plan]

"""The API's connections: what is lost on the way is asked again, whatever psycopg calls the loss."""

from __future__ import annotations

import time

from api.database import Database
from shared.store.pool import Connection


def test_a_handler_that_stood_still_inside_a_transaction_makes_it_again(database_url: str) -> None:
    """The server ends such a transaction, and psycopg calls that an InternalError: it is a lost connection like any."""
    told: list[bool] = []

    def work(connection: Connection, again: bool) -> int:
        told.append(again)
        with connection.transaction():
            if not again:
                connection.execute("set local idle_in_transaction_session_timeout = '50ms'")
                time.sleep(0.3)  # what the test is about: this process stands still
            row = connection.execute("select 7").fetchone()
        assert row is not None
        return row[0]

    database = Database(database_url, size=2)
    try:
        assert database.run(work) == 7
    finally:
        database.close()
    assert told == [False, True]

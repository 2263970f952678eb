"""Whether the right to write is still this holder's: asked where a statement wrote nothing, or its reply was lost.

The question waits for the session's row lock, so a transaction of ours that is still on its way has ended before it is
answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.store.pool import Connection
from shared.store.statements import Statement, every, one, step
from workers.held import Held
from workers.ports import Ports


def write(
    ports: Ports, held: Held, statement: Statement, values: Mapping[str, Any], *, landed: Statement | None = None
) -> DictRow:
    """As `rows`, of a statement that gives one row."""
    return rows(ports, held, statement, values, landed=landed)[0]


def rows(
    ports: Ports, held: Held, statement: Statement, values: Mapping[str, Any], *, landed: Statement | None = None
) -> list[DictRow]:
    """Send one fenced statement; its rows. `session`, `turn` and `fence` are the holder's, the other values are given.

    No row at all means that the fence has moved. A statement that may not be sent twice says by `landed`, which is
    asked with the same values and gives rows of the same columns, how to see that it is there. Raises LeaseLost.
    """
    claim = held.claim
    params = {**values, "session": claim.session, "turn": claim.turn, "fence": claim.fence}

    def work(connection: Connection) -> list[DictRow]:
        found = every(connection, statement, params)
        if not found:
            raise LeaseLost
        return found

    def recover(connection: Connection) -> list[DictRow] | None:
        confirm(connection, held)
        return None if landed is None else every(connection, landed, params) or None

    return ports.database.write(work, recover=recover)


def standing(connection: Connection, held: Held) -> int:
    """The session's fence as it is now. Raises LeaseLost where the session is gone."""
    row = one(connection, step.HOLD, {"session": held.claim.session})
    if row is None:
        raise LeaseLost
    return row["fence"]


def confirm(connection: Connection, held: Held) -> None:
    """Raises LeaseLost unless the fence is the one that was claimed."""
    if standing(connection, held) != held.claim.fence:
        raise LeaseLost

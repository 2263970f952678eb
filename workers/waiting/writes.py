"""Fenced writes of the waiting rows. Each statement may be sent twice: it inserts nothing a second time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.store.pool import Connection
from shared.store.statements import Statement, every
from workers import fence
from workers.held import Held
from workers.ports import Ports


def fenced(ports: Ports, held: Held, statement: Statement, params: Mapping[str, Any]) -> list[DictRow]:
    """The statement's rows. No row at all means that the fence has moved: raises LeaseLost."""
    values = {"session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence, **params}

    def work(connection: Connection) -> list[DictRow]:
        rows = every(connection, statement, values)
        if not rows:
            raise LeaseLost
        return rows

    def recover(connection: Connection) -> list[DictRow] | None:
        fence.confirm(connection, held)
        return None

    return ports.database.write(work, recover=recover)

"""The rows of what runs in the background, as the run of a tool writes and reads them, each under its turn's fence."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.store.pool import Connection, Database
from shared.store.statements import Statement, backgrounds, every, one, step
from workers.tools.context import Store


def begin(store: Store, name: str, seconds: float) -> UUID:
    """That `name` may run from now on for so long, here; the boot id of this worker. Raises LeaseLost."""
    values = _key(store, name) | {"host": socket.gethostname(), "seconds": seconds}
    return _fenced(store, backgrounds.BACKGROUND_BEGIN, values)["boot_id"]


def settle(store: Store, name: str, status: str, ending: str) -> None:
    """How it ended, or that nobody knows; the first word on it stands. Raises LeaseLost."""
    values = _key(store, name) | {"status": status, "ending": ending}
    _fenced(store, backgrounds.BACKGROUND_SETTLE, values)


def find(store: Store, name: str) -> DictRow | None:
    return store.database.read(lambda c: one(c, backgrounds.BACKGROUND, {"turn": store.turn, "name": name}))


def going_on(database: Database, turns: Sequence[str], boot: UUID) -> dict[str, bool]:
    """Of these turns those that the worker `boot` may go on with, each with whether it waits to be claimed."""
    values = {"turns": list(turns), "boot": boot}
    return {row["id"]: row["waits"] for row in database.read(lambda c: every(c, backgrounds.BACKGROUNDS_GO_ON, values))}


def _key(store: Store, name: str) -> dict[str, object]:
    return {"session": store.session, "fence": store.fence, "turn": store.turn, "name": name}


def _fenced(store: Store, statement: Statement, values: dict[str, object]) -> DictRow:
    """Both statements say the same when sent twice, so a lost reply is answered by asking whether the fence is ours."""

    def send(connection: Connection) -> DictRow:
        row = one(connection, statement, values)
        if row is None:
            raise LeaseLost
        return row

    def recover(connection: Connection) -> DictRow | None:
        row = one(connection, step.HOLD, {"session": store.session})
        if row is None or row["fence"] != store.fence:
            raise LeaseLost
        return None

    return store.database.write(send, recover=recover)

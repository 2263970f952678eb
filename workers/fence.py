"""Whether the right to write is still this holder's: asked where a statement wrote nothing, or its reply was lost.

The question waits for the session's row lock, so a transaction of ours that is still on its way has ended before it is
answered.
"""

from __future__ import annotations

from shared.errors import LeaseLost
from shared.store.pool import Connection
from shared.store.statements import one, step
from workers.held import Held


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

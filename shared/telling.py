"""After a commit that ended a turn: where it is a child, who watches its parent learns of it.

A hint, and the only thing said to a stream that the teller does not hold: the rows say the same, so what cannot be told
is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from shared.errors import NightshiftError
from shared.store import children
from shared.store.pool import Connection
from shared.stream import Aside

Read = Callable[[Callable[[Connection], Aside | None]], Aside | None]


def parent_of(read: Read, turn: UUID, send: Callable[[Aside], object]) -> None:
    """`read` runs a read on the process's database; `send` puts it on the parent's stream and does not raise."""
    try:
        aside = read(lambda c: children.told(c, turn))
    except NightshiftError:
        return
    if aside is not None:
        send(aside)

"""How many workers live, among whom a limit is shared while Redis is away. Asked seldom, and never twice at once."""

from __future__ import annotations

import threading
import time

from shared.errors import StoreUnavailable
from shared.store.pool import Database
from shared.store.statements import liveness, one

EVERY_S = 10.0
PATIENCE_S = 0.5


class Workers:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known = 1
        self._asked_at = 0.0

    def count(self) -> int:
        """At least one. What was true last counts while the database is away."""
        if time.monotonic() - self._asked_at < EVERY_S or not self._lock.acquire(blocking=False):
            return self._known
        try:
            self._asked_at = time.monotonic()
            row = self._database.write(lambda c: one(c, liveness.WORKERS, {}), recover=None, patience_s=PATIENCE_S)
            self._known = max(1, row["workers"] if row is not None else 1)
        except StoreUnavailable:
            pass
        finally:
            self._lock.release()
        return self._known

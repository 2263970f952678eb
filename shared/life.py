"""One process's life: its `workers` row with a lease, an advisory lock on its boot id, and until when it may act.

The invariant: whoever acts under this boot id asks first (`may_act`, `claims_allowed`), on a clock that counts sleep,
so a process that was frozen knows that it is late before anybody else needs to tell it.

A process that was declared dead while it was frozen goes on under the same boot id: what it held was taken away by
raising fences, so its late writes are refused row by row; its next renewal revives the row, and only then may it claim
again.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import uuid
from typing import Literal

import psycopg
import structlog

from shared.boottime import boottime
from shared.ids import lock_key
from shared.settings import Settings
from shared.store.deadline import within
from shared.store.pool import Connection
from shared.store.statements import liveness, one, run

log = structlog.get_logger("life")
_FAILURES = (psycopg.Error, OSError, RuntimeError)
"""Of the database, of descriptors, of threads: a life that ended over one would take its process's turns along."""
_CONNECT_S = 3
_ANSWER_S = 4.0
_STOP_S = 5.0
_UNLOCKED_BEAT_S = 0.3
"""While the lock is away the heartbeat alone says that we live: the sweep believes it for one second."""


class Life:
    """Begins with `start`, ends with `stop`; everything between is kept up by two threads. Safe from any thread."""

    def __init__(self, settings: Settings, kind: Literal["worker", "scheduler"], slots: int, classes: str) -> None:
        self.boot_id = uuid.uuid4()
        self.lock_key = lock_key(self.boot_id)
        self.renewals = 0
        self.relocks = 0
        self.lapses = 0
        """How often the lease was over before it was renewed: others may have taken away what was held before."""
        self._settings = settings
        self._row = {
            "boot": self.boot_id, "kind": kind, "host": socket.gethostname(), "pid": os.getpid(), "slots": slots,
            "classes": classes, "lock_key": self.lock_key, "lease_s": settings.lease_s,
        }  # fmt: skip
        self._margin = min(1.0, settings.lease_s / 10)
        self._until = 0.0
        self._begun = False
        self._reason = "stopped"
        self._draining = threading.Event()
        self._locked = threading.Event()
        self._alive = threading.Event()
        self._ending = threading.Event()
        self._beat_now = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._threads = (
            threading.Thread(target=self._watch, name="life-lock", daemon=True),
            threading.Thread(target=self._beat, name="life-beat", daemon=True),
        )

    # --- what others ask ------------------------------------------------------------------------------------------

    def lease_deadline(self) -> float:
        """Until when (of `boottime`) this process may act: its last renewal's start, plus the lease, less a margin.

        The start, since the database's lease begins later than that: others wait at least as long as we act.
        """
        return self._until

    def may_act(self) -> bool:
        return boottime() < self._until

    def await_lease(self, seconds: float) -> bool:
        """Whether this process may act, waited for at most so long: after an outage the next renewal brings it back."""
        end = boottime() + seconds
        while not self.may_act():
            if boottime() >= end or self._ending.wait(0.05):
                return False
        return True

    @property
    def claims_allowed(self) -> bool:
        """Whether to take new work: the lock is held, the lease runs, and nobody asked us to drain."""
        return self._locked.is_set() and self.may_act() and not self._draining.is_set()

    @property
    def draining(self) -> bool:
        return self._draining.is_set()

    def drain(self) -> None:
        """Take no new work from now on; the row says so with the next renewal, which comes at once."""
        self._draining.set()
        self._beat_now.set()

    # --- begin and end ----------------------------------------------------------------------------------------------

    def start(self, patience_s: float | None = None) -> bool:
        """True once the lock is held and the row stands; False when `patience_s` is over or `stop` was called first.

        After False it goes on trying, and may be called again. The lock comes before the row: a row without a lock is
        what a dead process looks like.
        """
        if not self._begun:
            self._begun = True
            for thread in self._threads:
                thread.start()
        self._alive.wait(patience_s)
        return self._alive.is_set() and not self._ending.is_set()

    def stop(self, reason: str) -> None:
        """Mark the row stopped, then give the lock back. Bounded by five seconds: where the database is away, the sweep
        finds out by itself."""
        if self._ending.is_set():
            return
        self._reason = reason
        self._draining.set()
        self._ending.set()
        self._alive.set()
        self._beat_now.set()
        lock_thread, beat_thread = self._threads
        if beat_thread.is_alive():
            beat_thread.join(_ANSWER_S)
        self._until = 0.0
        os.write(self._wake_write, b"x")
        if lock_thread.is_alive():
            lock_thread.join(_STOP_S - _ANSWER_S)
        if not lock_thread.is_alive():
            os.close(self._wake_read)
            os.close(self._wake_write)

    # --- the lock -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        failures = 0
        while not self._ending.is_set():
            try:
                with self._connect(self._settings.direct_url) as connection:
                    # The old backend may hold it still: lock_timeout ends that wait, and we try again.
                    with within(connection, _ANSWER_S):
                        connection.execute("select pg_advisory_lock(%s)", (self.lock_key,))
                    self._locked.set()
                    self.relocks += 1
                    failures = 0
                    self._sit(connection)
            except _FAILURES as error:
                failures += 1
                log.warning("life.lock_away", boot=str(self.boot_id), error=type(error).__name__, tries=failures)
            finally:
                self._locked.clear()
                self._beat_now.set()
            self._ending.wait(min(0.1 * (failures - 1), 1.0) if failures else 0)

    def _sit(self, connection: Connection) -> None:
        """Hold the lock until the end; raises psycopg.Error as soon as the connection is not what it was."""
        watched = select.poll()
        watched.register(connection.fileno(), select.POLLIN)
        watched.register(self._wake_read, select.POLLIN)
        while not self._ending.is_set():
            # An idle server says nothing, so anything to read is its farewell; silence is asked at each heartbeat.
            watched.poll(self._settings.heartbeat_s * 1000)
            if not self._ending.is_set():
                with within(connection, _ANSWER_S):
                    connection.execute("select 1")

    # --- the lease ----------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        failures = 0
        while not self._ending.is_set() and not self._locked.wait(0.1):
            pass
        while not (self._ending.is_set() and failures):  # at the end one failure is enough
            try:
                with self._connect(self._settings.database_url) as connection:
                    while not self._ending.is_set():
                        self._renew(connection)
                        failures = 0
                        self._pause(self._settings.heartbeat_s if self._locked.is_set() else _UNLOCKED_BEAT_S)
                    with within(connection, _ANSWER_S):
                        run(connection, liveness.BEAT_STOP, {"boot": self.boot_id, "reason": self._reason})
                    return
            except _FAILURES as error:
                failures += 1
                log.warning("life.beat_missed", boot=str(self.boot_id), error=type(error).__name__, tries=failures)
                self._ending.wait(min(0.1 * failures, 1.0))

    def _renew(self, connection: Connection) -> None:
        begun = boottime()
        with within(connection, _ANSWER_S):
            row = one(connection, liveness.BEAT, {**self._row, "draining": self._draining.is_set()})
        # Counted before the lease is there again: who sees the new one must see that the old one had ended.
        if self.renewals and boottime() >= self._until:
            self.lapses += 1
        self._until = begun + self._settings.lease_s - self._margin
        self.renewals += 1
        self._alive.set()
        if row and row["was_stopped"]:
            log.warning("life.revived", boot=str(self.boot_id), was=row["was_stopped"])

    def _pause(self, seconds: float) -> None:
        self._beat_now.wait(seconds)
        self._beat_now.clear()

    def _connect(self, url: str) -> Connection:
        return psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=None,  # the URL may lead through a pooler
            connect_timeout=_CONNECT_S,
            application_name=f"nightshift-life {self.boot_id}",
        )

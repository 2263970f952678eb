"""A claim in a thread of its own that a test moves from point to point: the real loop over real servers, and the test
decides when it goes on, dies, or is declared dead while it stands still."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from queue import Queue
from typing import cast

import pytest

from shared.boottime import boottime
from shared.ids import lock_key
from shared.life import Life
from shared.store.pool import Database
from shared.store.statements import liveness, one, run
from shared.values import Repeat
from tests.ground import CLASSES, Ground, Once
from workers.hints import Turns
from workers.look import look
from workers.pause import Pauses, Point
from workers.ports import Ports
from workers.tools import registry
from workers.tools.context import Arguments, ToolContext, ToolResult
from workers.tools.tool import Tool

EFFECT, ASKED = "effect", "asked_effect"
OVER = "over"
BETWEEN = frozenset({
    Point.RESERVED, Point.BEFORE_CALL, Point.AFTER_CALL, Point.RECORDED, Point.BEFORE_TOOL, Point.IN_TOOL,
    Point.AFTER_TOOL, Point.FINISHED,
})  # fmt: skip
"""Points at which no transaction is open."""
_PATIENCE_S = 60.0
_here = threading.local()


class Died(BaseException):
    """The process is gone: nothing after this point runs."""


class Mortal:
    """A process's right to act. Its row in `workers` is written by the product's own statements; only who renews it,
    and when, is the test's to say."""

    claims_allowed = True

    def __init__(self, database: Database) -> None:
        self.boot_id = uuid.uuid4()
        self.lapses = 0
        self._database = database
        self._may = False
        self.revive()

    def revive(self) -> None:
        row = {
            "boot": self.boot_id, "kind": "worker", "host": "test", "pid": 0, "slots": 1, "draining": False,
            "classes": ",".join(CLASSES), "lock_key": lock_key(self.boot_id), "lease_s": 3600,
        }  # fmt: skip
        self._database.read(lambda c: one(c, liveness.BEAT, row))
        self._may = True

    def die(self) -> None:
        """Others hold it for dead from now on."""
        self._may = False
        self._database.read(lambda c: run(c, liveness.BEAT_STOP, {"boot": self.boot_id, "reason": "lost"}).rowcount)

    def may_act(self) -> bool:
        return self._may

    def lease_deadline(self) -> float:
        return boottime() + 3600 if self._may else 0.0

    def await_lease(self, seconds: float) -> bool:
        """A process that thawed renews: it lives again, under the same name."""
        del seconds
        self.lapses += 1
        self.revive()
        return True


class Runner:
    """One process that claims once. It stands still at each of `holds` until it is told to `go` or to `crash`."""

    def __init__(self, worker: Ground, holds: frozenset[Point] = BETWEEN) -> None:
        self.life = Mortal(worker.database)
        self.frozen = False
        self.stands: str = "begun"
        self._holds = holds
        self._told: Queue[bool] = Queue()
        self._said: Queue[str] = Queue()
        self._ports = Ports(
            worker.settings, worker.database, worker.ports.routes, worker.ports.publisher, cast("Life", self.life),
            worker.ports.doorbell, cast("Pauses", self),
        )  # fmt: skip
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._await()

    @property
    def over(self) -> bool:
        return self.stands == OVER

    def go(self) -> str:
        """On to the next point. Where it stands then."""
        self._told.put(True)
        return self._await()

    def let_go(self) -> None:
        """On, without waiting for where it gets to."""
        self._told.put(True)

    def arrive(self) -> str:
        """The second half of `let_go`."""
        return self._await()

    def crash(self) -> None:
        """It is gone, with whatever it had not written; others learn of it at once."""
        self._told.put(False)
        self._await()

    def freeze(self) -> None:
        """It stands still for so long that others hold it for dead; `go` thaws it."""
        self.frozen = True
        self.life.die()

    # --- as the pauses of its process -------------------------------------------------------------------------------

    def inside(self, point: Point) -> bool:
        return point in self._holds

    def at(self, point: Point) -> None:
        if point in self._holds:
            self._said.put(point)
            if not self._told.get(timeout=_PATIENCE_S):
                raise Died

    # --- its thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        _here.runner = self
        try:
            look(self._ports, Turns(), Once(1, CLASSES))
        except Died:
            pass
        except BaseException as error:
            self._said.put(f"broke: {type(error).__name__}: {error}")
            raise
        finally:
            self.life.die()
        self._said.put(OVER)

    def _await(self) -> str:
        self.stands = self._said.get(timeout=_PATIENCE_S)
        return self.stands


class Effects:
    """Two tools that may run only once: how often each run had its effect, in a place that no transaction undoes."""

    def __init__(self) -> None:
        self.happened: Counter[tuple[str, int, int]] = Counter()
        self._lock = threading.Lock()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """The tools are there for this test alone."""
        for name in (EFFECT, ASKED):
            tool = Tool(
                name=name,
                description="Has an effect in the world, once a call.",
                schema={"type": "object", "properties": {}, "additionalProperties": False},
                repeat=Repeat.ONCE,
                run=self._act,
                cap_chars=1000,
            )
            patch.setitem(vars(registry)["_ALL"], name, tool)

    def _act(self, context: ToolContext, arguments: Arguments) -> ToolResult:
        del arguments
        runner = getattr(_here, "runner", None)
        if runner is not None:
            runner.at(Point.IN_TOOL)
        with self._lock:
            self.happened[context.turn, context.step, context.ordinal] += 1
        return ToolResult("the effect happened")

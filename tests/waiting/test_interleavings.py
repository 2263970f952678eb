"""A property of waiting: whatever comes between whatever, the rows hold what they must.

Random interleavings of claim, step, crash, freeze, park, wake, expiry, steer, cancel, decision, delivery and change of
a cap, each by the product's own statements over real Postgres; every third act meets another one at the same moment,
on real locks. The workers are the real loop in threads that stand still between two transactions (`held_still`). After
each act the invariants are looked at, and after the last one everything is brought to rest. A failure names its seed
and its acts.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Generator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from scheduler.parks import end_left, rederive
from scheduler.room import Room
from scheduler.takeover import take_orphans
from scheduler.upkeep import fold_idle
from scheduler.wake import Waker
from shared.errors import Refused
from shared.store import cancel, caps, intake, waits
from shared.store.pool import Connection
from shared.values import OnBusy, Role
from tests.ground import Ground, Rehearsal, ground
from tests.waiting import invariants
from tests.waiting.acts import advance, delegate, tool
from tests.waiting.held_still import ASKED, EFFECT, Effects, Runner
from tests.waiting.living import room

ACTS = 36
SEEDS = range(4)
MOST_HELD = 4
LONG_S = 100_000_000
"""No deadline passes here: the clock is moved by days, to let what waits for a person run out."""
CAPS = (None, Decimal("0.001"), Decimal("0.14"), Decimal("0.2"))
"""A call may cost some $0.13 and costs a tenth of that: these stop a turn never, at once, and after a few steps."""
TOOLS: tuple[list[dict[str, Any]], ...] = (
    [tool(EFFECT)],
    [tool(ASKED)],
    [tool(EFFECT), tool(ASKED), tool("list_files"), tool(EFFECT)],
    [tool(ASKED), tool(ASKED)],
    [tool("clarify", question="which?")],
    [delegate("one", "two")],
    [delegate("one"), tool(ASKED)],
    [delegate("alone", background=True)],
    [tool("list_files"), tool("list_files")],
)


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> Effects:
    made = Effects()
    made.install(monkeypatch)
    return made


@pytest.fixture
def worker(
    effects: Effects, database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path
) -> Generator[Ground]:
    del effects  # its tools must be there before the demands are read
    provider.reset()
    with ground(
        database_url, redis_url, provider.url, tmp_path, approve_tools=ASKED, attempts=100, child_deadline_s=LONG_S
    ) as made:
        yield made


class World:
    """One house of two conversations, and whatever may befall it."""

    def __init__(self, worker: Ground, provider: Rehearsal, sweeper: Room, seed: int) -> None:
        self.worker, self.sweeper, self.random = worker, sweeper, random.Random(seed)
        self.waker = Waker(sweeper)
        self.runners: list[Runner] = []
        self._taken: list[Runner] = []  # by the acts of this moment: a thread is moved by one of them
        self.log: list[str] = []
        self.said: Counter[str] = Counter()
        self.decisions: Counter[UUID] = Counter()
        self.memory = invariants.Memory()
        self.sessions = [worker.session() for _ in range(2)]
        for session in self.sessions:
            replies = [self._reply() for _ in range(60)]
            provider.script(replies, session=str(session))
        provider.script([self._of_child() for _ in range(100)], match={"contains": "one"})
        provider.script([{"text": "so it is"}], repeat=True)

    def act(self) -> None:
        """One thing happens, or two at the same moment."""
        self._taken = []
        together = [self._choose()]
        if self.random.random() < 0.35:
            together.append(self._choose())
        self.log.append(" + ".join(name for name, _ in together))
        _at_once([work for _, work in together])
        self.runners = [runner for runner in self.runners if not runner.over]
        self.memory.look(self.worker)

    def rest(self) -> None:
        """Everybody is let go, everything that waits is decided, and what is left is done."""
        self.log.append("rest")
        for runner in self.runners:
            while not runner.over:
                runner.go()
        for _ in range(60):
            self._sweep()
            for row in self.worker.rows("select id from approvals where status = 'pending'"):
                self._decide(row["id"], approve=True)
            for row in self.worker.rows("select session from questions where status = 'open'"):
                self._say(row["session"], OnBusy.STEER)
            for row in self.worker.rows("select id, session from turns where parked_on = 'money'"):
                self._cap(row["id"], row["session"], None)
            advance(self.worker, 3)
            self.worker.look()
            if not self.worker.rows("select 1 from turns where status in ('queued', 'running', 'parked')") and not (
                fold_idle(self.sweeper)
            ):
                break
        self.memory.look(self.worker)
        assert self.sweeper.counters["wake_missed"] == 0
        assert all(times == 1 for times in self.decisions.values())
        invariants.told_once(self.worker, self.said)

    # --- what may happen --------------------------------------------------------------------------------------------

    def _choose(self) -> tuple[str, Callable[[], object]]:
        session, number = self.random.choice(self.sessions), self.random.randrange(6)
        acts: list[tuple[int, str, Callable[[], object]]] = [
            (3, "say", lambda: self._say(session, OnBusy.QUEUE)),
            (3, "steer", lambda: self._say(session, OnBusy.STEER)),
            (2, "deliver", lambda: self._deliver(session, number)),
            (2, "sweep", self._sweep),
            (1, "expire", self._expire),
        ]
        if len(self.runners) < MOST_HELD:
            acts.append((6, "claim", self._claim))
        turn, approval = self._any("select id from turns order by seq"), self._any(
            "select id from approvals where status = 'pending' or random() < 0.1 order by id")  # fmt: skip
        if turn is not None:
            acts.append((2, "cancel", lambda: self._cancel(turn)))
            cap, of = self.random.choice(CAPS), self.random.choice((None, session))
            acts.append((4, f"cap {cap}", lambda: self._cap(turn, of, cap)))
        if approval is not None:
            approve = self.random.random() < 0.7
            acts.append((5, f"decide {approve}", lambda: self._decide(approval, approve=approve)))
        free = [runner for runner in self.runners if runner not in self._taken]
        if free:
            runner = self.random.choice(free)
            self._taken.append(runner)
            acts.append((16, f"go from {runner.stands}", runner.go))
            acts.append((2, f"crash at {runner.stands}", runner.crash))
            acts.append((2, f"freeze at {runner.stands}", runner.freeze))
        (found,) = self.random.choices(acts, [weight for weight, _, _ in acts])
        return found[1], found[2]

    def _claim(self) -> None:
        self.runners.append(Runner(self.worker))

    def _say(self, session: UUID, on_busy: OnBusy) -> None:
        mark = f"m{len(self.said)}"
        self.said[mark] += 1
        cap = self.random.choice(CAPS)
        _refusable(lambda: self.worker.turn(session, f"<{mark}>", on_busy=on_busy, deadline_s=LONG_S, cap_usd=cap))

    def _deliver(self, session: UUID, number: int) -> None:
        """The same delivery may come twice: it is known by its key."""
        mark = f"d{session.hex[-4:]}-{number}"
        self.said[mark] += 1
        text = f'[{{"type":"text","text":"<{mark}>"}}]'
        self._transact(lambda c: intake.deliver(c, session, self.worker.person, text, mark))

    def _cancel(self, turn: UUID) -> None:
        self._transact(lambda c: cancel.cancel(c, turn, self.worker.person))
        for below in self.worker.database.read(lambda c: cancel.below(c, turn)):
            self._transact(lambda c, below=below: cancel.cancel(c, below, self.worker.person))

    def _cap(self, turn: UUID, session: UUID | None, usd: Decimal | None) -> None:
        """Of the turn, and, where one is given, of a session too."""
        self._transact(lambda c: caps.of_turn(c, turn, self.worker.person, usd))
        if session is not None:
            self._transact(lambda c: caps.of_session(c, session, self.worker.person, usd and usd * 4))

    def _decide(self, approval: UUID, *, approve: bool) -> None:
        def work(connection: Connection) -> bool:
            waits.decide(connection, approval, self.worker.person, Role.APPROVER, approve=approve, note=None)
            return True

        if self._transact(work):
            self.decisions[approval] += 1

    def _expire(self) -> None:
        advance(self.worker, self.worker.settings.approval_limit_s + 1)
        self.waker.run()

    def _sweep(self) -> None:
        take_orphans(self.sweeper)
        end_left(self.sweeper)
        advance(self.worker, 3)
        rederive(self.sweeper)
        fold_idle(self.sweeper)

    # --- how ----------------------------------------------------------------------------------------------------------

    def _any(self, query: str) -> UUID | None:
        found = self.worker.rows(query)
        return self.random.choice(found)["id"] if found else None

    def _transact(self, work: Callable[[Connection], Any]) -> Any:
        def whole(connection: Connection) -> Any:
            with connection.transaction():
                return work(connection)

        return _refusable(lambda: self.worker.database.read(whole))

    def _reply(self) -> dict[str, Any]:
        if self.random.random() < 0.3:
            return {"text": "that is all"}
        return {"text": "so", "tools": self.random.choice(TOOLS)}

    def _of_child(self) -> dict[str, Any]:
        return {"text": "found", "tools": [tool(ASKED)]} if self.random.random() < 0.3 else {"text": "found it"}


def _refusable(work: Callable[[], Any]) -> Any:
    """What it gives; None where the house says no."""
    try:
        return work()
    except Refused:
        return None


def _at_once(works: list[Callable[[], object]]) -> None:
    """All begin at the same moment; the first fault of any is raised here."""
    if len(works) == 1:
        works[0]()
        return
    barrier, faults = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        try:
            barrier.wait(10)
            work()
        except BaseException as error:  # noqa: BLE001 - carried over to the test's own thread
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    if faults:
        raise faults[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_comes_between_whatever(worker: Ground, provider: Rehearsal, effects: Effects, seed: int) -> None:
    with room(worker) as sweeper:
        world = World(worker, provider, sweeper, seed)
        try:
            for _ in range(ACTS):
                world.act()
            world.rest()
            invariants.at_rest(worker, effects)
            assert all(call["status"] == 200 for call in provider.ledger())
        except BaseException as error:
            error.add_note(f"seed {seed}, acts: " + ", ".join(world.log))
            raise
        assert worker.rows("select 1 from turns where status = 'done'")

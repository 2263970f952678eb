"""One watched turn: its events in the order of the stream, made into a log that each viewer reads from its own place.

All changes to timeline and log happen under one lock, so that a snapshot and the place behind it belong together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import assert_never
from uuid import UUID

import structlog

from api.answers import text as json_text
from api.events import frames
from api.events.log import Log
from api.events.timeline import Ask, Committed, Doubt, Drop, Send, Timeline, Verdict
from api.events.truth import Seen, Standing, Truth
from api.events.viewer import Viewer
from api.wire.shown import Turn
from shared.errors import StoreUnavailable
from shared.stream import Event
from shared.values import TERMINAL, EventKind, TurnStatus

MOST_PENDING = 25_000
CATCH_UP_S, CATCH_UP_TRIES = 0.3, 15
JOIN_S = 4.0
_ASK_AGAIN_S = 0.5
log = structlog.get_logger("events")


class Feed:
    """`wake(feed)` is called when there is more to read."""

    def __init__(self, turn: UUID, truth: Truth, wake: Callable[[Feed], None]) -> None:
        self.turn = turn
        self.viewers: set[Viewer] = set()
        self.idle_since = asyncio.get_running_loop().time()
        self.arriving = 0
        self.over = False
        self.log = Log()
        self.timeline = Timeline()
        self._truth = truth
        self._wake = wake
        self._lock = asyncio.Lock()
        self._pending: deque[Event] = deque()
        self._more = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._overdue = 0
        self._told_park = -1
        self._told_asked: datetime | None = None
        self._mending: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run(), name=f"feed {turn}")

    def close(self) -> None:
        self._task.cancel()
        if self._mending is not None:
            self._mending.cancel()

    # --- from the stream --------------------------------------------------------------------------------------------

    def push(self, events: list[Event]) -> None:
        """Events as they were read. What does not fit is dropped, which shows as a gap."""
        if self.over:
            return
        room = MOST_PENDING - len(self._pending)
        self._pending.extend(events[:room])
        if self._pending:
            self._quiet.clear()
            self._more.set()

    async def _run(self) -> None:
        while not self.over:
            await self._more.wait()
            self._more.clear()
            while self._pending and not self.over:
                async with self._lock:
                    before = self.log.end
                    for _ in range(min(200, len(self._pending))):
                        await self._handle(self._pending.popleft())
                    if self.log.end != before:
                        self._wake(self)
                await asyncio.sleep(0)  # a long history must not hold up the loop
            self._quiet.set()

    async def _handle(self, event: Event) -> None:
        if self.over:
            return
        verdict: Verdict = self.timeline.take(event)
        while isinstance(verdict, Ask):
            verdict = await self._settle(verdict)
        match verdict:
            case Send(sent):
                self.log.append(sent.id, frames.of_event(sent))
                if sent.kind is EventKind.TURN_FINISHED:
                    self.over = True
                elif sent.kind is EventKind.TURN_PARKED:
                    self._told_park = sent.fence
            case Drop():
                pass
            case _:
                assert_never(verdict)

    async def _settle(self, ask: Ask) -> Verdict:
        """Ask Postgres until it answers, tell the viewers what changed, and judge the event that waited."""
        event = ask.event
        view, steps = await self._ask()
        match ask.doubt:
            case Doubt.HOLDER:
                news = self.timeline.settle(steps, before=True)
                void = self.timeline.close()
                id_ = f"{event.step}.{event.fence}.0"
                if news or ask.damaged:
                    self._snapshot(id_, view)
                elif void is not None and event.kind is not EventKind.STEP_RESTARTED:
                    data = {"step": void, "fence": event.fence, "reason": "another worker took over"}
                    self.log.append(id_, frames.frame(id_, EventKind.STEP_RESTARTED, data))
                return self.timeline.judge(event)
            case Doubt.STEP:
                self.timeline.settle(steps)
                self._snapshot(event.id if self.timeline.safe else self._unresumable(), view)
                return Drop()
            case Doubt.END:
                self.timeline.settle(steps)
                self._snapshot(self._unresumable(), view)
                return Send(event)
            case _:
                assert_never(ask.doubt)

    async def _ask(self) -> tuple[Turn | None, dict[int, Committed]]:
        while True:
            try:
                return await self._truth.turn(self.turn), await self._truth.steps(self.turn)
            except StoreUnavailable:
                await asyncio.sleep(_ASK_AGAIN_S)

    # --- from Postgres ----------------------------------------------------------------------------------------------

    def stands(self, standing: Standing | None) -> None:
        """Told once a second. What the stream should have brought and did not is made from the rows."""
        behind = (
            standing is None
            or standing.status in TERMINAL
            or self.timeline.lacks({standing.step} - {0})
            or self._slept_unheard(standing)
            or self._asked_unheard(standing)
        )
        self._overdue = self._overdue + 1 if behind and not self.over else 0
        if self._overdue >= 2 and (self._mending is None or self._mending.done()):
            self._mending = asyncio.create_task(self._mend(standing))

    def _slept_unheard(self, standing: Standing | Seen | None) -> bool:
        """Whether a park never came by the stream. It raises the fence by one above that of the event that tells it."""
        return standing is not None and standing.status is TurnStatus.PARKED and standing.fence - 1 > self._told_park

    def _asked_unheard(self, standing: Standing | Seen | None) -> bool:
        """Whether something below the turn asks a person, whom its stream does not tell of that."""
        asked_at = standing.asked_at if isinstance(standing, Standing) else None
        return asked_at is not None and (self._told_asked is None or asked_at > self._told_asked)

    async def _mend(self, standing: Standing | Seen | None) -> None:
        async with self._lock:
            if self.over:
                return
            try:
                view, steps = await self._truth.turn(self.turn), await self._truth.steps(self.turn)
            except StoreUnavailable:
                return
            ended = standing is None or (view is not None and view.status in TERMINAL)
            self.timeline.finished = ended
            news = self.timeline.settle(steps)
            unheard = self._slept_unheard(standing)
            if unheard and standing is not None:
                self._told_park = standing.fence - 1
            asked = self._asked_unheard(standing)
            if asked and isinstance(standing, Standing):
                self._told_asked = standing.asked_at
            if news or unheard or asked or (ended and (not self.timeline.safe or self.timeline.open_step is not None)):
                self.timeline.damaged = self.timeline.damaged and not ended
                self._snapshot(self._unresumable(standing), view)
            if ended:
                self._finish_by_row(view, standing)
            self._wake(self)

    def _finish_by_row(self, view: Turn | None, standing: Standing | Seen | None) -> None:
        fence = self._last_fence(standing)
        error = None if view is None or view.error is None else view.error.model_dump()
        data = {
            "step": self.timeline.passed, "fence": fence, "status": "cancelled" if view is None else view.status,
            "answer": None if view is None else view.answer, "error": error,
            "unknown_effects": 0 if view is None else view.unknown_effects,
        }  # fmt: skip
        id_ = f"{self.timeline.passed}.{fence}.1"
        self.log.append(id_, frames.frame(id_, EventKind.TURN_FINISHED, data))
        self.over = True
        self._more.set()

    # --- to the viewers ---------------------------------------------------------------------------------------------

    async def join(self, viewer: Viewer, last_id: str | None, seen: Seen) -> tuple[bytes, int]:
        """What a viewer is sent first, and its place in the log from there on. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(JOIN_S):
                await self._quiet.wait()
                await self._catch_up(seen)
                if seen.status in TERMINAL and not self.over:
                    await self._mend(seen)
                place = self._place(last_id, seen)
                if place is not None:
                    self.viewers.add(viewer)
                    return b"", place
                view = await self._truth.turn(self.turn)
                async with self._lock:
                    if self.timeline.lacks(seen.steps) and self.timeline.settle(await self._truth.steps(self.turn)):
                        self._snapshot(self._unresumable(seen), view)  # who watches already lacks them too
                        self._wake(self)
                    self.viewers.add(viewer)
                    if self.over:  # the terminal event is the last one, and everyone gets it
                        return self._snapshot_frame(self._unresumable(), view), self.log.end - 1
                    safe_id = self.log.last_id if self.timeline.safe else None
                    return self._snapshot_frame(safe_id or self._unresumable(seen), view), self.log.end
        except TimeoutError as error:
            raise StoreUnavailable("the turn's events cannot be had in time: try again shortly") from error

    def _place(self, last_id: str | None, seen: Seen) -> int | None:
        """Where a viewer goes on without a snapshot, or None."""
        if last_id is not None:
            return self.log.after(last_id)
        if self.log.base > 0 or self.timeline.lacks(seen.steps):
            return None
        if self.log.end == 0 and seen.status is TurnStatus.QUEUED:
            self.log.append("0.0.0", frames.frame("0.0.0", EventKind.TURN_QUEUED, {"step": 0, "fence": 0}))
        return 0 if self.timeline.safe or self.log.end else None

    async def _catch_up(self, seen: Seen) -> None:
        """Rows are ahead of the stream by one flush: wait for that long before rows are taken instead."""
        for _ in range(CATCH_UP_TRIES):
            if self.over or not (seen.status in TERMINAL or self.timeline.lacks(seen.steps)):
                return
            await asyncio.sleep(CATCH_UP_S / CATCH_UP_TRIES)

    def _snapshot(self, id_: str, view: Turn | None) -> None:
        self.log.append(id_, self._snapshot_frame(id_, view))

    def _snapshot_frame(self, id_: str, view: Turn | None) -> bytes:
        steps = self.timeline.steps()
        turn = "null" if view is None else json_text(view)
        rest = {"steps": steps, "text": "".join(one["text"] for one in steps)}
        return frames.snapshot(id_, turn, rest)

    def _last_fence(self, found: Standing | Seen | None) -> int:
        return max(self.timeline.fence, 0 if found is None else found.fence) + 1

    def _unresumable(self, found: Standing | Seen | None = None) -> str:
        """An id that no writer gives (its n is 0): who comes back with it is answered by a snapshot."""
        fence = self.timeline.fence
        if found is not None and self.timeline.finished:
            fence = self._last_fence(found)
        elif found is not None and found.status is TurnStatus.RUNNING:
            fence = max(fence, found.fence)
        return f"{self.timeline.passed}.{max(fence, 0)}.0"

"""A turn while this worker holds it: what was claimed, how it may be interrupted, and what memory keeps between steps.

Memory is a cache of rows: dropped at every claim, never a source of what goes to a provider.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

from shared.models import Limits
from shared.prices import OwnPrice
from shared.providers.chains import Link
from shared.providers.scopes import Owner
from shared.request.assembled import Request
from shared.request.projection import MessageRow
from shared.store.waits import Woken
from shared.values import Purpose, SessionKind, TurnClass
from workers.circling import Circle
from workers.providers.sockets import Cancel
from workers.reduction.sizes import Tally
from workers.reduction.state import Context

STEERED = "steered"
"""Why a call was cut though its turn goes on: a person said something that this call could not have read."""


class Interrupt(StrEnum):
    """Why a turn must stop where it is; the first one counts, but a lost lease outranks all."""

    CANCEL = "cancel"
    DEADLINE = "deadline"
    DRAIN = "drain"
    LOST = "lost"
    YIELD = "yield"
    """Hand the turn back between two steps: a question waits for the only slot, or an admin stopped the claims. The
    weakest reason, which every other one replaces, and which cuts nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the claim returned, and the session's settings, which no one else changes while the turn runs."""

    turn: UUID
    session: UUID
    fence: int
    turn_class: TurnClass
    holder: UUID
    attempts: int
    takeovers: int
    requested_by: UUID
    profile: str
    provider: str
    model: str
    kind: SessionKind
    depth: int
    listed: tuple[str, ...] | None
    """The session's own list of tools; None where its kind says which it has."""
    tools: tuple[str, ...]
    """Those of its prompt; of one that has none yet, those that it would like to have."""
    parent: UUID | None
    shared_key: str | None
    workspace: Path
    folder: Path | None
    max_steps: int
    session_started: str
    seconds_left: float
    waited_s: float
    owner: Owner | None = None
    """Whose keys of a provider it uses before the team's; None where it has the team's alone."""


@dataclass(slots=True)
class Money:
    """Dollars as the rows have them: only this holder spends more while it holds the fence. A background child that
    ends meanwhile gives back what it did not spend, and caps are changed by people: each write that reserves compares
    the rows' own.

    `promised` are the caps of this turn's children that live; `others_children` is what children of the session's
    other turns have cost or may still cost.
    """

    turn_spent: Decimal
    turn_reserved: Decimal
    session_spent: Decimal
    session_reserved: Decimal
    children_spent: Decimal
    promised: Decimal
    others_children: Decimal
    turn_cap: Decimal | None
    session_cap: Decimal | None
    budget_version: int
    """Of the caps that many turns share, as they were when a call was last decided by them."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Money:
        """From the columns that a claim returns."""
        return cls(
            row["turn_spent"], row["turn_reserved"], row["session_spent"], row["session_reserved"], row["children_usd"],
            row["children_promised_usd"], row["others_children_usd"], row["turn_cap"], row["session_cap"],
            row["budget_version"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """Dollars that this turn has drawn from one window of a shared cap, which may be spent until its end; what of them
    is used is what the turn has spent since, its spent dollars less `from_usd`."""

    scope: str
    window: str
    until: datetime
    cap: Decimal
    amount: Decimal
    from_usd: Decimal


@dataclass(frozen=True, slots=True)
class Draws:
    """The blocks of a turn, one for each shared cap that holds for it, under that version of the caps."""

    version: int
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class Held:
    """One claimed turn. One thread writes for it; others only call `interrupt`."""

    claim: Claim
    step: int  # committed steps
    steps: int
    refunds: int
    money: Money
    warned: dict[str, int]
    prefix: str | None
    last_edit: int
    baseline: tuple[int, int] | None  # (estimate, billed)
    pinned: int | None
    chain: tuple[int, str] | None
    next_ordinal: int
    context: Context
    clock: datetime
    """The database's `clock_now()` as the last statement that told it had it; `now` goes on from there."""
    failed_tries: int
    failed_purpose: Purpose | None
    """Of the failed call that this step still has to make again; None where the step begins anew."""
    limits: Limits
    """Of its model."""
    primary: Link
    """What the session itself speaks to; `claim` has what this turn does, which is another while that is out."""
    spoke: str | None
    """To which link the last call of the conversation went: its cache, and its signed reasoning, are there alone."""
    money_late: bool
    """It has waited for money for as long as it may: if it is short still, it ends."""
    out_s: float | None = None
    """For how long no link has taken its call; None where one has."""
    avoided: set[Link] = field(default_factory=set[Link])
    """Links that failed this turn for a while: asked last."""
    refused: dict[Link, tuple[str, str]] = field(default_factory=dict[Link, tuple[str, str]])
    """Links that cannot do for this turn, with the code and the sentence that say why."""
    ticket: Any = None
    """The booked call (routing.Ticket) that the step in progress has not made yet."""
    key: str | None = None
    """The key that answered last: a cache entry may be its alone."""
    rested: int = 0
    """Strikes of what was last found resting."""
    lent: bool = False
    """The call in progress goes to another model than the conversation's: without tools and signed reasoning."""
    spilled: int = 0
    """Of the step in progress: how often its largest blocks were left out."""
    draws: Draws | None = None
    prices: Mapping[str, Mapping[str, OwnPrice]] = field(default_factory=dict[str, Mapping[str, OwnPrice]])
    """As the settings have them, before any list's."""
    request: Request | None = None
    judge: bool = True
    """The request was read afresh and its transcript must be looked over before it goes out."""
    unread: list[MessageRow] = field(default_factory=list[MessageRow])
    """Committed rows that `request` does not hold yet, as the statements that wrote them gave them back."""
    calls_made: int = 0
    """Since `request` was read."""
    tally: Tally | None = None
    """Of `request`: what could be left out of it."""
    carried: bool = False
    """What the call that is due carries is in the context's meters."""
    no_compaction_before: datetime | None = None
    """The breaker said so."""
    told_floor: bool = False
    served: bool = False
    """It has carried out what a person asked of the transcript."""
    overflows: int = 0
    """Of the step in progress: calls that the provider found too long."""
    region_end: int | None = None
    """Of the edit that the next call is the first after."""
    last_tool: str | None = None
    stopped_tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that an admin has stopped, with what a call of one is told. Replaced as a whole, from any thread."""
    circle: Circle = field(default_factory=Circle)
    """What came of its tool runs, and whether there are to be any more."""
    gives_way: bool = False
    """It has the only slot of its worker, which a question may claim between two of its steps."""
    told_warm: bool = False
    reasoning_dropped: bool = False
    woken: Woken | None = None
    """The parent that this turn's end woke, if it did: whoever told of the end rings for it."""
    deadline: float = 0.0
    claimed_at: float = field(default_factory=time.monotonic)
    _clock_read: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _reason: Interrupt | None = None
    _cancel: Cancel | None = None
    _steerable: bool = True

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.claim.seconds_left

    def forget(self) -> None:
        """A write landed whose rows did not come back: the next request is read whole."""
        self.request = None
        self.unread.clear()

    def told(self, now: datetime) -> None:
        """A statement gave back the database's clock."""
        self.clock, self._clock_read = now, time.monotonic()

    def now(self) -> datetime:
        """The database's clock, without asking it: a test clock that jumps is seen with the next statement."""
        return self.clock + timedelta(seconds=time.monotonic() - self._clock_read)

    def new_epoch(self, last_edit: int, *, pinned: int | None = None, region_end: int | None = None) -> None:
        """An edit of the past landed: what memory holds of the request is no longer what it was. `pinned` is a row that
        the provider still keeps an entry for, `region_end` the last row of what was edited (cache_plan.PlanState).

        The baseline stays: it tells how this conversation is counted, whatever has become of its size.
        """
        self.request, self.chain = None, None
        self.unread.clear()
        self.last_edit, self.pinned, self.region_end = last_edit, pinned, region_end

    @property
    def steps_used(self) -> int:
        return self.steps - self.refunds

    def speak_to(self, link: Link, limits: Limits) -> None:
        """From here on this turn's calls go there. What is known of sizes and of the cache is of the other model."""
        self.claim = replace(self.claim, provider=link.provider, model=link.model)
        self.limits, self.ticket, self.key = limits, None, None

    def adopt(self, prefix: str, tools: tuple[str, ...]) -> None:
        """The session has this prompt from here on, and the tools that it offers."""
        self.prefix = prefix
        self.claim = replace(self.claim, tools=tools)

    def interrupt(self, reason: Interrupt) -> None:
        """From any thread: stop at the next point where stopping is safe, and free a blocked call at once."""
        with self._lock:
            if self._reason in (None, Interrupt.YIELD) or reason is Interrupt.LOST:
                self._reason = reason
            cancel = self._cancel
        if reason is Interrupt.YIELD:
            return
        self._stop.set()
        if cancel is not None and reason is not Interrupt.DRAIN:
            cancel.cancel(reason)

    def cut(self, reason: Interrupt) -> None:
        """As `interrupt`, and a draining worker whose patience is over cuts the call too."""
        self.interrupt(reason)
        with self._lock:
            cancel = self._cancel
        if cancel is not None:
            cancel.cancel(reason)

    def interrupted(self) -> Interrupt | None:
        """The reason to stop, or None. A deadline is noticed here by the turn's own clock."""
        with self._lock:
            if self._reason in (None, Interrupt.YIELD) and time.monotonic() >= self.deadline:
                self._reason = Interrupt.DEADLINE
            return self._reason

    def must_stop(self) -> bool:
        """Whether work in hand is to be given up (draining and giving way let the step end)."""
        return self.interrupted() not in (None, Interrupt.DRAIN, Interrupt.YIELD)

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than the turn may live, and not at all once it is interrupted."""
        self._stop.wait(max(0.0, min(seconds, self.deadline - time.monotonic())))

    def calling(self, *, steerable: bool = True) -> Cancel:
        """The handle of the call about to go out. A reason that came before cancels it at once. One that is not
        `steerable` is cut by no person's words: they are read when it is over."""
        cancel = Cancel()
        with self._lock:
            self._cancel = cancel
            self._steerable = steerable
            reason = self._reason
        if reason not in (None, Interrupt.DRAIN, Interrupt.YIELD):
            cancel.cancel(reason)
        return cancel

    def called(self) -> None:
        with self._lock:
            self._cancel = None

    def call_in_flight(self) -> Cancel | None:
        """The call that is out at this moment: what `steer` may cut, if it still is."""
        with self._lock:
            return self._cancel if self._steerable else None

    def steer(self, call: Cancel | None) -> None:
        """From any thread: cut this one call, because words came that it has not read. Nothing is remembered: if that
        call is over by now, the next boundary reads the words, and a later call must not be cut for them."""
        with self._lock:
            if call is None or self._cancel is not call:
                return
        call.cancel(STEERED)

"""The same as `script`, in the memory of one process: what a worker keeps to while Redis is away. It takes its share of
each limit, one part for each worker that lives."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.manners.kept import put
from workers.manners.terms import (
    BLOCK_A_MINUTE,
    BURST_MS,
    HALF,
    LEAST_SLEEP_MS,
    MINUTE_MS,
    OF_A_BUCKET,
    PATIENCE_MS,
    PROBE_LOOK_MS,
    PROBE_MS,
    PROVIDER_PROBE_MS,
    SHARE,
    SLOWEST_MS,
    Asked,
    Told,
    Took,
    Wait,
    Window,
)


@dataclass(slots=True)
class _State:
    due: float = 0.0
    tokens_due: float = 0.0
    requests: float = 0.0
    tokens: float = 0.0
    sure: bool = False
    slow: float = 0.0
    slow_until: float = 0.0
    tokens_slow: float = 0.0
    tokens_slow_until: float = 0.0
    line: float = 0.0
    used: int = 0
    turn: int = 0
    until: float = 0.0
    strikes: int = 0
    probe: float = 0.0
    hold: float = 0.0
    cooled: float = 0.0
    recalled: str = ""
    """The memory of Redis that it was last put right by."""

    def probed(self, now: float) -> bool:
        return self.until <= now < self.probe and self.strikes > 0

    def closed(self, now: float, *, mine: bool = False) -> float:
        """For how long nothing goes out. `mine`: for the one whose call is the probe."""
        if self.until > now:
            return self.until - now
        if self.strikes and self.probe > now and not mine:
            return min(self.probe - now, PROBE_LOOK_MS)
        return 0.0

    def recall(self, memory: str, now: float) -> None:
        """Redis is away: what this worker saw there last, once. What it saw since the last time that it was away is
        news."""
        if not memory or memory == self.recalled:
            return
        self.recalled = memory
        _born, due, tokens_due, line, until, strikes = (float(word) for word in memory.split())
        self.due, self.tokens_due, self.line = (
            max(self.due, due),
            max(self.tokens_due, tokens_due),
            max(self.line, line),
        )
        if until > now - MINUTE_MS:
            self.until, self.strikes = max(self.until, until), max(self.strikes, int(strikes))


@dataclass(slots=True)
class _Open:
    at: int
    state: _State
    limit: float
    each: float
    token: float
    wait: float


class Alone:
    """`workers` tells how many share each limit."""

    def __init__(self, workers: Callable[[], int] = lambda: 1) -> None:
        self._workers = workers
        self._states: dict[str, _State] = {}
        self._lock = threading.Lock()

    def _of(self, name: str) -> _State:
        """Who was asked last stands last, and who was asked first goes where there is no room: a key that was
        exchanged, for one that is in use is asked with every call."""
        state = self._states.get(name) or _State()
        put(self._states, name, state)
        return state

    def take(self, asked: Asked, memories: Sequence[str] = ()) -> Took | Wait:
        """`memories` of the provider and of its keys, as Redis told them last."""
        share = 1 / max(1, self._workers())
        with self._lock:
            for name, memory in zip((asked.provider, *asked.keys), memories, strict=False):
                self._of(name).recall(memory, asked.now_ms)
            return self._take(asked, share)

    def release(self, names: Sequence[str]) -> None:
        with self._lock:
            for name in names:
                self._of(name).probe = 0.0

    def _take(self, asked: Asked, share: float) -> Took | Wait:
        now, rest, mine = asked.now_ms, self._of(asked.provider), asked.requests < 0
        if (wait := rest.closed(now, mine=mine)) > 0:
            return Wait(math.ceil(wait), resting=True, strikes=rest.strikes, probed=rest.probed(now))
        keys = [self._of(name) for name in asked.keys]
        shut = [wait for one in keys if (wait := one.closed(now, mine=mine)) > 0]
        found = [self._open(asked, at, one, share) for at, one in enumerate(keys) if one.closed(now, mine=mine) <= 0]
        if not found:
            most = max((one.strikes for one in keys), default=0)
            probed = any(one.probed(now) for one in keys)
            return Wait(math.ceil(min(shut, default=PROBE_LOOK_MS)), resting=True, strikes=most, probed=probed)
        if asked.requests <= 0:
            return _stands(asked, found[0])
        best = self._best(asked, found, rest)
        state = best.state
        if best.wait > PATIENCE_MS:
            line = max(state.line, state.due, state.tokens_due, now)
            state.line = line + max(best.each, 1)
            wait = math.ceil(max(LEAST_SLEEP_MS, line - now - PATIENCE_MS))
            return Wait(wait, resting=False, strikes=state.strikes)
        requests = asked.requests
        if best.limit > 0:
            requests = min(requests, max(1, int(best.limit / BLOCK_A_MINUTE)))
        if state.strikes or rest.strikes or (best.token > 0 and best.limit == 0):
            requests = 1
        if best.each > 0:
            state.due = max(state.due, now) + requests * best.each
        if best.token > 0 and asked.tokens > 0:
            state.tokens_due = max(state.tokens_due, now) + asked.tokens * best.token
        state.used += min(requests, 1000)
        for one, waited_for in ((state, PROBE_MS), (rest, PROVIDER_PROBE_MS)):
            if one.strikes:
                one.probe = now + waited_for
        return Took(best.at, math.ceil(best.wait), max(state.strikes, rest.strikes), requests)

    def _best(self, asked: Asked, found: list[_Open], rest: _State) -> _Open:
        count = len(asked.keys)
        if asked.order == "round_robin" and count > 1:
            rest.turn += 1
            found.sort(key=lambda one: (one.at + 1 - rest.turn) % count)
        elif asked.order == "least_used":
            found.sort(key=lambda one: (one.state.used, one.at))
        liked = next((one for one in found if one.at == asked.preferred and one.wait == 0), None)
        return liked or min(found, key=lambda one: one.wait)

    def _open(self, asked: Asked, at: int, state: _State, share: float) -> _Open:
        now, known = asked.now_ms, asked.limits[at]
        requests, tokens = (state.requests or known.requests) * share, (state.tokens or known.tokens) * share
        half, early = (1.0, BURST_MS) if state.sure else (HALF, 0.0)
        made = _Open(at, state, requests, 0.0, 0.0, 0.0)
        if requests > 0:
            made.each = half * MINUTE_MS / (requests * SHARE)
            if state.slow_until > now:
                made.each = max(made.each, state.slow)
            made.wait = max(0.0, state.due - early - now, state.hold - now)
        if tokens > 0:
            made.token = half * MINUTE_MS / (tokens * SHARE)
            if state.tokens_slow_until > now:
                made.token = max(made.token, state.tokens_slow)
            made.wait = max(made.wait, state.tokens_due - early - now)
        return made

    def tell(self, provider: str, key: str, told: Told, now_ms: float, *, ok: bool, more: float = 0.0) -> None:
        share = 1 / max(1, self._workers())
        with self._lock:
            state = self._of(key)
            for one in (self._of(provider), state) if ok else ():
                if one.strikes and one.until <= now_ms:
                    one.until, one.strikes, one.probe = 0.0, 0, 0.0
            if told.requests is not None:
                state.requests, state.sure = told.requests.limit, True
                state.due, state.slow, state.slow_until = _fed(told.requests, state.due, state.slow, now_ms, share)
                if told.requests.left == 0 and told.requests.reset_ms < OF_A_BUCKET * MINUTE_MS:
                    state.hold = max(state.hold, now_ms + told.requests.reset_ms)
                    state.due, state.slow_until = max(state.due, state.hold), 0.0
            if told.tokens is not None:
                state.tokens, state.sure = told.tokens.limit, True
                fed = _fed(told.tokens, state.tokens_due, state.tokens_slow, now_ms, share)
                state.tokens_due, state.tokens_slow, state.tokens_slow_until = fed
            if more and state.tokens > 0:
                state.tokens_due = max(state.tokens_due, now_ms) + more * MINUTE_MS / (state.tokens * SHARE * share)

    def cool(self, name: str, now_ms: float, told_ms: float, first_ms: float, longest_ms: float) -> tuple[float, int]:
        with self._lock:
            state = self._of(name)
            if state.until <= now_ms:
                state.strikes += 1
            elif told_ms == 0:
                return math.ceil(state.until - now_ms), state.strikes
            wait = told_ms or min(first_ms * 2.0 ** (state.strikes - 1), longest_ms)
            state.until, state.probe, state.cooled = max(state.until, now_ms + wait), 0.0, now_ms
            state.due = min(state.due, state.until)
            return math.ceil(state.until - now_ms), state.strikes


def _stands(asked: Asked, found: _Open) -> Took | Wait:
    """Whether what was booked may go out. Nothing is booked."""
    state = found.state
    if asked.booked_ms and state.cooled >= asked.booked_ms:
        return Wait(0, resting=True, strikes=state.strikes)
    if asked.booked_ms and not asked.waited and state.hold > asked.now_ms:
        held = math.ceil(state.hold - asked.now_ms)
        state.hold += found.each
        return Wait(held, resting=False, strikes=state.strikes)
    return Took(found.at, 0, state.strikes, 0)


def _fed(window: Window, due: float, slow: float, now: float, share: float) -> tuple[float, float, float]:
    """(due, slow, slow until) after an answer. What little is left is left to all workers."""
    each = MINUTE_MS / (window.limit * SHARE * share)
    if window.left is None:
        return due, slow, 0.0
    if window.left == 0:
        due = max(due, now + each)
    thin = min(window.reset_ms / (window.left + 1), SLOWEST_MS) / share
    return (due, thin, now + min(window.reset_ms, 3 * thin)) if thin > each else (due, 0.0, 0.0)

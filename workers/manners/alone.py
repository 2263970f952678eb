"""The same as `script`, in the memory of one process: what a worker keeps to while Redis is away. It takes its share of
each limit, one part for each worker that lives."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from workers.manners.terms import (
    BLOCK_A_MINUTE,
    BURST_MS,
    HALF,
    LEAST_SLEEP_MS,
    MINUTE_MS,
    PATIENCE_MS,
    PROBE_LOOK_MS,
    PROBE_MS,
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

    def probed(self, now: float) -> bool:
        return self.until <= now < self.probe and self.strikes > 0

    def closed(self, now: float) -> float:
        if self.until > now:
            return self.until - now
        if self.strikes and self.probe > now:
            return min(self.probe - now, PROBE_LOOK_MS)
        return 0.0


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
        self._states: defaultdict[str, _State] = defaultdict(_State)
        self._lock = threading.Lock()

    def forget(self) -> None:
        with self._lock:
            self._states.clear()

    def take(self, asked: Asked) -> Took | Wait:
        share = 1 / max(1, self._workers())
        with self._lock:
            return self._take(asked, share)

    def _take(self, asked: Asked, share: float) -> Took | Wait:
        now, rest = asked.now_ms, self._states[asked.provider]
        if (wait := rest.closed(now)) > 0:
            return Wait(math.ceil(wait), resting=True, strikes=rest.strikes, probed=rest.probed(now))
        keys = [self._states[name] for name in asked.keys]
        shut = [wait for one in keys if (wait := one.closed(now)) > 0]
        found = [self._open(asked, at, one, share) for at, one in enumerate(keys) if one.closed(now) <= 0]
        if not found:
            most = max((one.strikes for one in keys), default=0)
            probed = any(one.probed(now) for one in keys)
            return Wait(math.ceil(min(shut, default=PROBE_LOOK_MS)), resting=True, strikes=most, probed=probed)
        if asked.requests == 0:
            return Took(found[0].at, 0, found[0].state.strikes, 0)
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
        for one in (state, rest):
            if one.strikes:
                one.probe = now + PROBE_MS
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
            made.wait = max(0.0, state.due - early - now)
        if tokens > 0:
            made.token = half * MINUTE_MS / (tokens * SHARE)
            if state.tokens_slow_until > now:
                made.token = max(made.token, state.tokens_slow)
            made.wait = max(made.wait, state.tokens_due - early - now)
        return made

    def tell(self, provider: str, key: str, told: Told, now_ms: float, *, ok: bool, more: float = 0.0) -> None:
        with self._lock:
            state = self._states[key]
            for one in (self._states[provider], state) if ok else ():
                if one.strikes and one.until <= now_ms:
                    one.until, one.strikes, one.probe = 0.0, 0, 0.0
            if told.requests is not None:
                state.requests, state.sure = told.requests.limit, True
                state.due, state.slow, state.slow_until = _fed(told.requests, state.due, state.slow, now_ms)
            if told.tokens is not None:
                state.tokens, state.sure = told.tokens.limit, True
                fed = _fed(told.tokens, state.tokens_due, state.tokens_slow, now_ms)
                state.tokens_due, state.tokens_slow, state.tokens_slow_until = fed
            if more and state.tokens > 0:
                state.tokens_due = max(state.tokens_due, now_ms) + more * MINUTE_MS / (state.tokens * SHARE)

    def cool(self, name: str, now_ms: float, told_ms: float, first_ms: float, longest_ms: float) -> tuple[float, int]:
        with self._lock:
            state = self._states[name]
            if state.until <= now_ms:
                state.strikes += 1
            elif told_ms == 0:
                return math.ceil(state.until - now_ms), state.strikes
            wait = told_ms or min(first_ms * 2.0 ** (state.strikes - 1), longest_ms)
            state.until, state.probe = max(state.until, now_ms + wait), 0.0
            return math.ceil(state.until - now_ms), state.strikes


def _fed(window: Window, due: float, slow: float, now: float) -> tuple[float, float, float]:
    """(due, slow, slow until) after an answer."""
    each = MINUTE_MS / (window.limit * SHARE)
    if window.left is None:
        return due, slow, 0.0
    if window.left == 0:
        due = max(due, now + each)
    thin = min(window.reset_ms / (window.left + 1), SLOWEST_MS)
    return (due, thin, now + min(window.reset_ms, 3 * thin)) if thin > each else (due, 0.0, 0.0)

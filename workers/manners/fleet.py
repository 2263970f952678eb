"""Owns what this worker asks of the fleet's state of each key: in Redis, or, while that is away, in its own memory.

Invariant: it never raises and never waits longer than Redis' own time-out, once in five seconds. What it knows of a
limit is kept here too, so that a key whose state was flushed is used at half its rate and not without any.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import redis
import structlog

from workers.manners import script
from workers.manners.alone import Alone
from workers.manners.kept import put
from workers.manners.terms import (
    ANY,
    BLOCK_A_MINUTE,
    BURST_MS,
    KEEP_MS,
    PATIENCE_MS,
    SHARE,
    Asked,
    Limit,
    Told,
    Took,
    Wait,
    Window,
)

AWAY_S = 5.0
BLOCK_S = 1.0
"""How long a block of calls is good for, and so how late a worker learns that a busy key is left alone."""
ROOMY = 0.5
"""Where more than that is left of every limit, one answer a second is told."""
log = structlog.get_logger("manners")


@dataclass(slots=True)
class _Block:
    took: Took
    left: int
    until: float


class Fleet:
    """`client` None is no Redis at all. `workers` tells how many share a limit without it."""

    def __init__(self, client: redis.Redis | None, workers: Callable[[], int]) -> None:
        self._client = client
        self._alone = Alone(workers)
        self._lock = threading.Lock()
        self._limits: dict[str, Limit] = {}
        self._blocks: dict[tuple[str, ...], _Block] = {}
        self._owed: dict[str, float] = {}
        self._told_at: dict[str, float] = {}
        self._memories: dict[str, str] = {}
        self._away_until = 0.0
        if client is not None:
            self._take = client.register_script(script.TAKE)
            self._tell = client.register_script(script.TELL)
            self._cool = client.register_script(script.COOL)
            self._release = client.register_script(script.RELEASE)

    def take(self, asked: Asked) -> Took | Wait:
        """Book one call; of a key that may be asked often, from a block that was booked at once."""
        tokens = asked.tokens
        with self._lock:
            block = self._blocks.get(asked.keys)
            if block is not None and block.left > 0 and time.monotonic() < block.until:
                block.left -= 1
                self._owed[asked.provider] = self._owed.get(asked.provider, 0.0) + tokens
                return block.took
            tokens += self._owed.pop(asked.provider, 0.0)
            limits = tuple(self._limits.get(key, given) for key, given in zip(asked.keys, asked.limits, strict=True))
        slowest = min((one.requests for one in limits if one.requests > 0), default=0.0)
        requests = max(1, int(slowest / BLOCK_A_MINUTE)) if slowest else ANY
        took = self._asked(replace(asked, limits=limits, tokens=tokens, requests=requests))
        if isinstance(took, Took) and took.requests > 1 and took.wait_ms == 0:
            with self._lock:
                put(self._blocks, asked.keys, _Block(took, took.requests - 1, time.monotonic() + BLOCK_S))
        return took

    def still(self, asked: Asked, *, probe: bool = False) -> Took | Wait:
        """Whether a key takes calls, or, with `booked_ms`, whether that call may go out after its wait: a Wait that is
        not resting holds it back a little more. Nothing is booked. `probe`: who asks has the probe, which keeps
        everybody else out until it has said something."""
        return self._asked(replace(asked, requests=-1 if probe else 0))

    def release(self, *names: str) -> None:
        """The probe of these will not go out: the next call is another one."""
        keys = [script.key(name) for name in names]
        if self._call(lambda: self._release(keys=keys)) is None:
            self._alone.release(names)

    def tell(
        self, provider: str, key: str, told: Told, now_ms: float, *, ok: bool, more: float = 0.0, strikes: int = 0
    ) -> None:
        """What an answer told of its key: its limits, `more` tokens than had been booked, and whether it was one."""
        if not self._news(key, told, strikes if ok else 0, more):
            return
        requests, tokens = told.requests or Window(0), told.tokens or Window(0)
        args: list[Any] = [int(now_ms), KEEP_MS, int(ok), SHARE]
        for one in (requests, tokens):
            args += [one.limit, -1 if one.left is None else one.left, one.reset_ms]
        keys = [script.key(provider), script.key(key)]
        if self._call(lambda: self._tell(keys=keys, args=[*args, more])) is None:
            self._alone.tell(provider, key, told, now_ms, ok=ok, more=more)

    def cool(
        self, name: str, now_ms: float, told_s: float | None, first_s: float, longest_s: float
    ) -> tuple[float, int]:
        """Leave a key or a provider alone: for how many seconds from now, and the strikes that it has now."""
        args = [int(now_ms), KEEP_MS, *(int((one or 0.0) * 1_000) for one in (told_s, first_s, longest_s))]
        with self._lock:
            self._blocks.clear()
        found = self._call(lambda: self._cool(keys=[script.key(name)], args=args))
        if found is None:
            found = self._alone.cool(name, now_ms, args[2], args[3], args[4])
        elif len(found) > 2:
            self._remember((name,), found[2:])
        return float(found[0]) / 1_000, int(found[1])

    def _news(self, key: str, told: Told, strikes: int, more: float) -> bool:
        """Whether an answer is worth a word: of a key that is far from its limits, one a second is."""
        windows = [one for one in (told.requests, told.tokens) if one is not None]
        limit = Limit(*(one.limit if one is not None else 0.0 for one in (told.requests, told.tokens)))
        with self._lock:
            known = self._limits.get(key)
            if windows:
                put(self._limits, key, limit)
                if known != limit:  # a block that was booked without it, or by another one
                    self._blocks.clear()
            if strikes:
                return True
            if not windows:
                return bool(more and known is not None and known.tokens)
            roomy = all(one.left is not None and one.left > ROOMY * one.limit for one in windows)
            if roomy and known == limit and time.monotonic() - self._told_at.get(key, 0.0) < BLOCK_S:
                return False
            put(self._told_at, key, time.monotonic())
        return True

    def _asked(self, asked: Asked) -> Took | Wait:
        preferred = 0 if asked.preferred is None else asked.preferred + 1
        args: list[Any] = [int(asked.now_ms), KEEP_MS, PATIENCE_MS, asked.tokens, asked.requests, asked.order,
                           preferred, SHARE, BURST_MS, int(asked.booked_ms), int(asked.waited)]  # fmt: skip
        for one in asked.limits:
            args += [one.requests, one.tokens]
        names = (asked.provider, *asked.keys)
        with self._lock:
            memories = [self._memories.get(name, "") for name in names]
        keys = [script.key(name) for name in names]
        found = self._call(lambda: self._take(keys=keys, args=[*args, *memories]))
        if found is None:
            return self._alone.take(asked, memories)
        self._remember(names, found[4:])
        return _read(found[:4])

    def _remember(self, names: Sequence[str], memories: Sequence[Any]) -> None:
        """What Redis told of each last: it may be all that is left of it."""
        with self._lock:
            for name, told in zip(names, memories, strict=True):
                put(self._memories, name, told.decode("ascii") if isinstance(told, bytes) else told)

    def _call(self, work: Callable[[], Any]) -> Sequence[Any] | None:
        """What Redis says; None where it is away, which is asked about again after a while."""
        if self._client is None or time.monotonic() < self._away_until:
            return None
        try:
            found: Any = work()
        except redis.RedisError as error:
            log.warning("manners.alone", error=type(error).__name__)
            self._away_until = time.monotonic() + AWAY_S
            return None
        return cast("Sequence[Any]", found) if isinstance(found, list) else [found]


def _read(found: Sequence[Any]) -> Took | Wait:
    at, wait_ms, third, fourth = (int(one) for one in found)
    if at == 0:
        return Wait(wait_ms, resting=third != 2, strikes=fourth, probed=third == 3)
    return Took(at - 1, wait_ms, third, fourth)

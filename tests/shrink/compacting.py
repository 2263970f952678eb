"""A session that is long enough to be compacted, and one compaction of it by a holder in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from shared.ids import uuid7
from tests.ground import CLASSES, Ground, Rehearsal
from workers import claiming, gathering, loop, reserving
from workers.compaction import instruction, run
from workers.held import Held
from workers.reduction.sizes import Tail

TAIL = Tail(4, 20_000)
GOOD = "\n".join(
    f"## {heading}\n- of {heading.lower()}: canary-{at}" for at, (heading, _) in enumerate(instruction.SECTIONS)
)
"""A summary as it should be."""


def todo(step: int, items: int = 40) -> dict[str, Any]:
    """A call whose result echoes it: about 280 characters an item each way."""
    given = [{"text": f"item {step} {n} " + "word " * 50} for n in range(items)]
    return {"name": "todo", "input": {"items": given}}


def long_session(
    worker: Ground,
    provider: Rehearsal,
    summaries: Sequence[dict[str, Any]] = (),
    replies: Sequence[dict[str, Any]] = (),
    steps: int = 8,
    **more: Any,
) -> UUID:
    """A session of one long turn and a short one; `replies` are what the provider says from then on, `summaries` what
    its summariser does."""
    session = worker.session(**more)
    first = [{"thinking": "hm", "text": f"step {n}", "tools": [todo(n)]} for n in range(steps)]
    provider.script([*first, {"text": "the long work is done"}, {"text": "yes"}, *replies], session=str(session))
    if summaries:
        provider.script(list(summaries), session=str(session), summaries=True)
    worker.turn(session, "Do the long work. It must not touch the ledger.")
    worker.look()
    worker.turn(session, "Is it done?")
    worker.look()
    return session


def claim(worker: Ground) -> Held:
    """The next turn, its input in the transcript."""
    held = claiming.claim_next(worker.ports, CLASSES, uuid7())
    assert held is not None
    reserving.commit_rows(worker.ports, held, gathering.gather(held, (), gathering.waiting(worker.ports, held)))
    return held


def compact(
    worker: Ground, held: Held, cause: str = "threshold", tail: Tail = TAIL
) -> run.Compacted | run.Skipped | run.Blocked | run.Failed:
    return run.compact(worker.ports, held, cause, {"prompt": 1}, tail)


def go_on(worker: Ground, held: Held) -> loop.TurnOutcome:
    return loop.run_turn(worker.ports, held)

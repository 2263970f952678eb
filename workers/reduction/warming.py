"""The ping: a read of the conversation's prefix just before the provider forgets it, by a turn that does nothing else.

It asks for one token of output, because our wire streams and a streamed call must ask for one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from shared.values import Purpose
from workers import conversing, recording, reserving
from workers.gathering import NOTHING
from workers.held import Held
from workers.ports import Ports
from workers.recording import Outcome
from workers.reserving import Planned

NEAR = timedelta(seconds=60)
"""Another turn may have read it since the scheduler looked: then there is nothing to do."""


def ping(ports: Ports, held: Held) -> None:
    """Read the prefix if a person wants it kept and it is about to be forgotten. Once: a call that fails is booked and
    not made again. Raises LeaseLost."""
    until = held.context.prefix_warm_until
    if not held.context.keep_warm or held.prefix is None or held.chain is None or until is None:
        return
    if not timedelta(0) < until - held.now() <= NEAR:
        return
    planned = reserving.reserve(ports, held, NOTHING, Purpose.PING)
    if not isinstance(planned, Planned):
        return
    recording.record(ports, held, planned, _outcome(ports, held, planned))


def _outcome(ports: Ports, held: Held, planned: Planned) -> Outcome:
    came = conversing.converse(ports, held, planned)
    match came:
        case conversing.Answered(reply):
            return conversing.settled(conversing.bill(held, planned, reply), reply, None, None, ())
        case conversing.Failed() as found:
            return conversing.failure(held, planned, found)
        case conversing.Cut(reason, partial):
            return conversing.cut_short(held, planned, partial, "", reason, None)
        case conversing.Steered(partial):
            return conversing.cut_short(held, planned, partial, "", "steered", None)
        case _:
            assert_never(came)

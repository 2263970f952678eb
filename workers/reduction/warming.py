"""The ping: a read of the conversation's prefix just before the provider forgets it, by a turn that does nothing else.

It asks for one token of output, because our wire streams and a streamed call must ask for one.
"""

from __future__ import annotations

from datetime import timedelta

from shared.values import Purpose
from workers import conversing, recording, reserving, routing
from workers.gathering import NOTHING
from workers.held import Held
from workers.ports import Ports
from workers.reserving import Planned

NEAR = timedelta(seconds=60)
"""Another turn may have read it since the scheduler looked: then there is nothing to do."""


def ping(ports: Ports, held: Held) -> None:
    """Read the prefix if a person wants it kept and it is about to be forgotten, where the conversation is with this
    model: any other one would have to be sent all of it anew. Once: a call that fails is booked and not made again.
    Raises LeaseLost."""
    until = held.context.prefix_warm_until
    if not held.context.keep_warm or held.prefix is None or held.chain is None or until is None:
        return
    if held.spoke not in (None, str(routing.current(held))):
        return
    if not timedelta(0) < until - held.now() <= NEAR:
        return
    planned = reserving.reserve(ports, held, NOTHING, Purpose.PING)
    if not isinstance(planned, Planned):
        return
    recording.record(ports, held, planned, conversing.aside(held, planned, conversing.converse(ports, held, planned)))

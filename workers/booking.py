"""Before a step: its call is booked at a key of the model that answers now, or the turn waits without a worker."""

from __future__ import annotations

from functools import partial

from shared.providers.chains import Link
from shared.values import TurnStatus
from workers import prefixing, probing, recording, reserving, routing
from workers.gathering import Gathered
from workers.held import Held, Interrupt
from workers.outcome import Again, Ended, Parked
from workers.ports import Ports
from workers.providers.failures import IN_PLACE_S
from workers.recording import Ending
from workers.routing import Later, Nobody, Ticket

LOOKS = 4
"""How often in a row a wait that ended is followed by another one in place."""
BACKOFF = "backoff"


def book(ports: Ports, held: Held, gathered: Gathered) -> Ended | Parked | Again | None:
    """None: `held.ticket` is the booked call, and `held.claim` names where it goes. Else the turn is left, with
    everything gathered in its transcript, or looked at again. Raises LeaseLost."""
    if held.ticket is not None and held.ticket.link == routing.current(held):
        return None
    routing.unsent(ports, held)
    wait_s, resting = 0.0, True
    answers = partial(probing.answers, ports, held)
    for look in range(LOOKS):
        got = routing.choose(ports, held, routing.weight(held), answers, patient=look < LOOKS - 1)
        if held.interrupted() not in (None, Interrupt.YIELD):  # a probe takes seconds, and a drain cuts no second call
            held.ticket = got if isinstance(got, Ticket) else None
            reserving.commit_rows(ports, held, gathered)
            return Again()
        match got:
            case Ticket():
                held.ticket = got  # whoever lets go of the turn gives it back
                prefixing.switch(ports, held, got.link, _why(held, got.link))
                held.ticket = got  # what was booked for the link before would be none
                wait_s, resting = got.wait_s, False
                if wait_s <= 0:
                    return None
            case Nobody(code, why):
                reserving.commit_rows(ports, held, gathered)
                ending = Ending(TurnStatus.FAILED, error_code=code, error_text=why)
                recording.end(ports, held, ending)
                return Ended(ending)
            case Later(wait_s, resting):
                if wait_s > IN_PLACE_S:
                    return _sleep(ports, held, gathered, wait_s, out=resting)
        held.wait(wait_s)
        if held.must_stop():
            reserving.commit_rows(ports, held, gathered)
            return Again()
        if isinstance(got, Ticket):
            if _stands(ports, held, got):
                return None
            routing.unsent(ports, held)
    return _sleep(ports, held, gathered, max(wait_s, 1.0), out=resting)


def _stands(ports: Ports, held: Held, ticket: routing.Ticket) -> bool:
    """Whether the booked call may go out, once it was held back for as long as the provider says that nothing is
    left."""
    more = routing.stands(ports, held, ticket)
    if more and more <= IN_PLACE_S:
        held.wait(more)
        more = None if held.must_stop() else routing.stands(ports, held, ticket, waited=True)
    return more == 0


def _sleep(ports: Ports, held: Held, gathered: Gathered, wait_s: float, *, out: bool) -> Ended | Parked:
    reserving.commit_rows(ports, held, gathered)
    if out and held.out_s is not None and held.out_s > ports.settings.outage_s:
        minutes = round(held.out_s / 60)
        text = f"no model of this session's chain has answered for {minutes} minutes: try again later, or name another"
        ending = Ending(TurnStatus.FAILED, error_code="provider_unavailable", error_text=text)
        recording.end(ports, held, ending)
        return Ended(ending)
    recording.park(ports, held, BACKOFF, wait_s, out=out)
    return Parked(BACKOFF, wait_s)


def _why(held: Held, to: Link) -> str:
    at = routing.current(held)
    if to == held.primary:
        return "the session's own model"
    return f"for the one before cannot do this ({held.refused[at][0]})" if at in held.refused else "for it is out"

"""Short of money: the turn sleeps until a cap is raised or a child gives back, and ends by itself where nobody does.

A child does not sleep for money of its own: what it may spend is its parent's to give, and the parent waits for it. For
a cap that it shares with others it does.
"""

from __future__ import annotations

import json

from shared.request import blocks
from shared.store.statements import every
from shared.store.statements import money as statements
from shared.values import EventKind, ParkReason, TurnStatus
from workers import budget, caps, fence
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.recording import Ending
from workers.reserving import Short
from workers.waiting import park
from workers.waiting.state import Wait

SHARED = frozenset({"job", "person", "team"})
"""Scopes of caps that many turns share: whoever raises one, or gives back to it, lets a child go on too."""


def may_wait(held: Held, short: Short) -> bool:
    return (held.claim.parent is None or short.scope in SHARED) and not held.money_late


def sleep(ports: Ports, held: Held, short: Short) -> bool:
    """Park for it. False where there is room by now, or the turn was told to stop: look again. Raises LeaseLost."""
    short_of = "budget" if short.scope in SHARED else None
    wait = Wait(ParkReason.MONEY, ports.settings.money_limit_s, short.needs, short_of)
    if park.park(ports, held, wait):
        return True
    caps.refresh(ports, held)
    return False


def tell(ports: Ports, held: Held) -> None:
    """Tell whoever watches that half, four fifths or all of a cap of the turn or its session is spent; each once a
    turn, whoever holds it, and anew where the cap was raised meanwhile. Raises LeaseLost."""
    for cap in caps.caps(ports, held):
        name, percent = f"{cap.scope}_told", budget.passed(cap.spent, cap.cap)
        told = held.warned.get(name, 0)
        if cap.scope == "call" or percent == told:
            continue
        fence.rows(ports, held, statements.TOLD_PEOPLE, {"warned": json.dumps({name: percent})})
        held.warned[name] = percent
        if percent > told:
            emit(ports, held, EventKind.BUDGET_WARNING, kind="money", percent=percent, of=cap.scope)


def ending(ports: Ports, held: Held, short: Short) -> Ending:
    """How a turn ends that may not wait (any longer): with what it has said so far."""
    text = short.message
    if held.money_late:
        text = f"{text}; nobody raised it within {ports.settings.money_limit_s / 3600:g} h"
    return Ending(
        TurnStatus.FAILED, answer=_said(ports, held), error_code=f"{short.scope}_cap_reached", error_text=text
    )


def _said(ports: Ports, held: Held) -> str | None:
    """The last text of the model in this turn."""
    rows = ports.database.read(lambda c: every(c, statements.LAST_WORDS, {"turn": held.claim.turn}))
    texts = ("".join(blocks.text_of(block) for block in blocks.split(row["content"])) for row in rows)
    return next((text for text in texts if text.strip()), None)

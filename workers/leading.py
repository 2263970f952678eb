"""Leader first, as its worker sees it: tell the rest when the provider's cache entry is there, step back where it will
not be soon.

Everything here is about money and never about a turn: a write that cannot be made is left out.
"""

from __future__ import annotations

import structlog

from shared.errors import StoreUnavailable
from shared.store.statements import leading, one
from workers.held import Held
from workers.ports import Ports

WAY_S = 10.0
"""Others may count on the entry for as long as the provider keeps it, less the way to it."""
MOST_RINGS = 16
PATIENCE_S = 1.0
log = structlog.get_logger("leading")


def warmed(ports: Ports, held: Held) -> None:
    """The reply has begun: whoever waits for this prefix may go. Once a claim; costs nothing where none is shared."""
    key = held.claim.shared_key
    if key is None or held.told_warm:
        return
    held.told_warm = True
    values = {
        "key": key, "warm_s": held.context.ttl.seconds - WAY_S, "session": held.claim.session,
        "fence": held.claim.fence, "most": MOST_RINGS,
    }  # fmt: skip
    try:
        row = ports.database.write(lambda c: one(c, leading.WARMED, values), recover=None, patience_s=PATIENCE_S)
    except StoreUnavailable:
        log.info("leading.untold", turn=str(held.claim.turn))
        return
    for _ in range(row["waiting"] if row is not None else 0):
        ports.doorbell.ring(held.claim.turn_class)


def step_back(ports: Ports, held: Held) -> None:
    """The call failed: another turn may lead while this one waits to try again."""
    key = held.claim.shared_key
    if key is None or held.told_warm:
        return
    values = {"key": key, "turn": held.claim.turn}
    try:
        led = ports.database.write(lambda c: one(c, leading.STEP_BACK, values), recover=None, patience_s=PATIENCE_S)
    except StoreUnavailable:
        return
    if led is not None:
        ports.doorbell.ring(held.claim.turn_class)

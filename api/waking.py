"""After a commit that ended what a turn slept for: the turn may be claimed, so its queue is rung."""

from __future__ import annotations

from api.services import Services
from shared.store.waits import Woken


def ring_for(services: Services, woken: Woken | None) -> None:
    if woken is not None and woken.turn_class is not None:
        services.ringer.ring(woken.turn_class)
        services.hub.nudge()

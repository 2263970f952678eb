"""A turn's events, by the turn's holder: the step and the fence that every event carries are filled in here."""

from __future__ import annotations

from typing import Any

from shared.values import EventKind
from workers.held import Held
from workers.ports import Ports


def emit(ports: Ports, held: Held, event: EventKind, /, *, step: int | None = None, **data: Any) -> None:
    """Queue one event of this turn; `step` defaults to the step in progress."""
    ports.publisher.put(held.claim.turn, held.claim.fence, held.step + 1 if step is None else step, event, data)

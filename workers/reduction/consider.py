"""Whether the past is to be rewritten now, asked before each call of the conversation; and the rewriting."""

from __future__ import annotations

from workers.gathering import Gathered
from workers.held import Held
from workers.ports import Ports


def consider(ports: Ports, held: Held, gathered: Gathered) -> None:
    """Afterwards the request that the next call is reserved from is the one to send. Raises LeaseLost."""

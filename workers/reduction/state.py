"""What a session's reductions are decided by: its row's columns as the holder knows them, a value from claim to T1.

The baseline, the pinned breakpoint and the chain stand in `Held`, where the step has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.request.marked import Ttl
from shared.store.pool import Connection
from shared.store.statements import one
from shared.store.statements import reduction as statements


@dataclass(frozen=True, slots=True)
class Context:
    """Loaded at claim (`held.context`), replaced by pure functions, written by the holder: by each T1, and by whatever
    statement carries a decision out. Each field is the column of its name (economics.md "In between, a meter decides").

    `meter`, `compact_meter`, `hold_5m`, `hold_1h`: in prices relative to input, the meters in tokens of input. Instants
    are the database's (`clock_now()`).
    """

    ttl: Ttl
    called_at: datetime | None = None
    """When the last call of the conversation that was answered went out: what the provider keeps its entry from."""
    prefix_warm_until: datetime | None = None
    meter: float = 0.0
    compact_meter: float = 0.0
    junk_tokens: int = 0
    wrote_tokens: float = 4_000.0
    hold_5m: float = 0.1
    hold_1h: float = 0.0
    regrow_to: int = 0
    """No prune while warm before the prompt is this large again; 0 is no bar."""
    warm_pings: int = 0
    keep_warm: bool = False
    """A person's choice. Read here, never written."""
    ineffective_strikes: int = 0
    fallback_streak: int = 0
    verdict_due: bool = False
    breaker_blocked_at: datetime | None = None

    def params(self) -> dict[str, Any]:
        """The values of `statements.reduction.CONTEXT_SET`."""
        return {
            "ttl": self.ttl, "meter": self.meter, "compact_meter": self.compact_meter,
            "junk_tokens": self.junk_tokens, "wrote_tokens": self.wrote_tokens, "hold_5m": self.hold_5m,
            "hold_1h": self.hold_1h, "regrow_to": self.regrow_to, "warm_pings": self.warm_pings,
            "ineffective_strikes": self.ineffective_strikes, "fallback_streak": self.fallback_streak,
            "verdict_due": self.verdict_due, "breaker_blocked_at": self.breaker_blocked_at,
        }  # fmt: skip


def of_row(row: DictRow) -> Context:
    """From a row that has `statements.reduction.CONTEXT_COLUMNS`."""
    return Context(
        ttl=Ttl(row["ttl"]),
        called_at=row["called_at"],
        prefix_warm_until=row["prefix_warm_until"],
        meter=row["meter"],
        compact_meter=row["compact_meter"],
        junk_tokens=row["junk_tokens"],
        wrote_tokens=row["wrote_tokens"],
        hold_5m=row["hold_5m"],
        hold_1h=row["hold_1h"],
        regrow_to=row["regrow_to"],
        warm_pings=row["warm_pings"],
        keep_warm=row["keep_warm"],
        ineffective_strikes=row["ineffective_strikes"],
        fallback_streak=row["fallback_streak"],
        verdict_due=row["verdict_due"],
        breaker_blocked_at=row["breaker_blocked_at"],
    )


def load(connection: Connection, session: UUID) -> Context:
    """As the row has it at this moment: for a holder whose own last write told it nothing. Raises LeaseLost."""
    row = one(connection, statements.CONTEXT, {"session": session})
    if row is None:
        raise LeaseLost
    return of_row(row)

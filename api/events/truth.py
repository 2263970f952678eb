"""What Postgres says of watched turns: the committed steps of one, and once a second how all of them stand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, cast
from uuid import UUID

import orjson

from api.asking import Asking
from api.events.timeline import Committed
from api.reads import turns
from api.visible import only
from api.wire.shown import Turn
from shared.errors import StoreUnavailable
from shared.values import TurnStatus

TURN: LiteralString = turns.SHOWN + " where t.id = %(turn)s"
STEPS = """
select step, fence, content from messages where turn = %(turn)s and role = 'assistant' order by step, ordinal
"""
# `asked_at`: when something below a turn that sleeps for its children last asked a person, and still waits for them.
STANDING = """
select t.id, t.status, t.step, t.fence, case when t.status = 'parked' and t.parked_on = 'children' then (
    with recursive below(id) as (
      select t.id
      union all
      select c.id from below b join turns c on c.parent = b.id
      where not c.background and c.status in ('queued', 'running', 'parked')
    )
    select max(a.created_at) from below b join approvals a on a.turn = b.id and a.status = 'pending'
  ) end as asked_at
from turns t where t.id = any(%(turns)s)
"""
LIVE_TOKENS = """
select t.digest from tokens t join principals p on p.id = t.principal
where t.digest = any(%(digests)s) and t.revoked_at is null and p.disabled_at is null
"""
SEEN = only(
    """
select t.id, x.who, t.status, t.fence,
  array(select m.step from messages m where m.turn = t.id and m.role = 'assistant') as steps
from unnest(%(turns)s::uuid[], %(whos)s::uuid[]) as x(turn, who)
join turns t on t.id = x.turn join sessions s on s.id = t.session
where true
""",
    who="x.who",
)
MOST_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Standing:
    """How a turn stands: `step` is its last committed one."""

    status: TurnStatus
    step: int
    fence: int
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A turn as a viewer finds it on arrival."""

    status: TurnStatus
    fence: int
    steps: frozenset[int]


class Truth:
    """Bounded reads; each raises StoreUnavailable."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._arriving: dict[tuple[UUID, UUID], asyncio.Future[Seen | None]] = {}
        self._answering: asyncio.Task[None] | None = None

    async def seen(self, turn: UUID, who: UUID) -> Seen | None:
        """The turn, or None where there is none that this principal may see. A crowd that arrives shares reads."""
        found = self._arriving.get((turn, who))
        if found is None:
            found = self._arriving[turn, who] = asyncio.get_running_loop().create_future()
            if self._answering is None or self._answering.done():
                self._answering = asyncio.create_task(self._answer())
        return await asyncio.shield(found)

    async def _answer(self) -> None:
        while self._arriving:
            some = dict(list(self._arriving.items())[:MOST_AT_ONCE])
            for pair in some:
                del self._arriving[pair]
            try:
                rows = await self._asking.rows(SEEN, {"turns": [t for t, _ in some], "whos": [w for _, w in some]})
            except StoreUnavailable as error:
                for future in some.values():
                    future.set_exception(error)
                continue
            known = {(row["id"], row["who"]): row for row in rows}
            for pair, future in some.items():
                row = known.get(pair)
                future.set_result(
                    None if row is None else Seen(TurnStatus(row["status"]), row["fence"], frozenset(row["steps"]))
                )

    async def turn(self, turn: UUID) -> Turn | None:
        rows = await self._asking.rows(TURN, {"turn": turn})
        return turns.shown(rows[0]) if rows else None

    async def steps(self, turn: UUID) -> dict[int, Committed]:
        """The committed steps; their text is that of the model's text blocks."""
        found: dict[int, Committed] = {}
        for row in await self._asking.rows(STEPS, {"turn": turn}):
            before = found.get(row["step"])
            text = ("" if before is None else before.text) + text_of(row["content"])
            found[row["step"]] = Committed(text, row["fence"])
        return found

    async def standing(self, watched: Iterable[UUID]) -> dict[UUID, Standing]:
        """How all of these turns stand, in one read."""
        rows = await self._asking.rows(STANDING, {"turns": list(watched)})
        return {
            row["id"]: Standing(TurnStatus(row["status"]), row["step"], row["fence"], row["asked_at"]) for row in rows
        }

    async def live_tokens(self, digests: Iterable[bytes]) -> set[bytes]:
        """Those of these tokens that are still good, in one read."""
        rows = await self._asking.rows(LIVE_TOKENS, {"digests": list(digests)})
        return {bytes(row["digest"]) for row in rows}


def text_of(content: str) -> str:
    """The text in a message's content, the text of a JSON array of blocks."""
    try:
        blocks: Any = orjson.loads(content)
    except orjson.JSONDecodeError:  # an escaped lone surrogate, which the standard library takes
        blocks = json.loads(content)
    found = cast("list[dict[str, Any]]", blocks)
    return "".join(str(block.get("text", "")) for block in found if block.get("type") == "text")

"""What a turn that waits for money is short of, as it is shown: each cap that has no room for its next call, how far it
is used, and what would be enough."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal
from typing import Any, Literal, LiteralString
from uuid import UUID

from api.wire.shown import Lacking

# Of a turn `t` of a session `s`. Numbers as text: JSON's would be rounded.
OF_TURN: LiteralString = """
  case when t.status = 'parked' and t.parked_on = 'money' then json_build_object('needs', t.short_usd::text,
    'turn', json_build_array(t.cap_usd::text, (t.spent_usd + t.children_usd)::text,
      (t.reserved_usd + t.children_promised_usd)::text),
    'session', (select json_build_array(s.cap_usd::text, (s.spent_usd + sum(o.children_usd))::text,
      (s.reserved_usd + sum(o.children_promised_usd))::text) from turns o where o.session = s.id)
  ) end as short
"""


def lacking(turn: UUID, session: UUID, short: dict[str, Any] | None) -> list[Lacking]:
    """`short` is the column of `OF_TURN`."""
    if short is None:
        return []
    needs = Decimal(short["needs"])
    return [*_of("turn", turn, short["turn"], needs), *_of("session", session, short["session"], needs)]


def _of(cap: Literal["turn", "session"], subject: UUID, texts: list[str | None], needs: Decimal) -> Iterator[Lacking]:
    limit, spent, promised = (None if text is None else Decimal(text) for text in texts)
    if limit is None or spent is None or promised is None or spent + promised + needs <= limit:
        return
    enough = (spent + promised + needs).quantize(Decimal("0.0001"), rounding=ROUND_UP)
    yield Lacking(
        cap=cap, id=subject, cap_usd=float(limit), spent_usd=float(spent), promised_usd=float(promised),
        left_usd=float(max(limit - spent - promised, Decimal(0))), needs_usd=float(needs), enough_usd=float(enough),
    )  # fmt: skip

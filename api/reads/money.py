"""What a turn that waits for money is short of, as it is shown: each cap that has no room for its next call, how far it
is used, and what would be enough."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal
from typing import Any, Literal, LiteralString
from uuid import UUID

from api.wire.shown import Lacking, LackingBudget

# Of a turn `t` of a session `s`. Numbers as text: JSON's would be rounded.
OF_TURN: LiteralString = """
  case when t.status = 'parked' and t.parked_on = 'money' then json_build_object('needs', t.short_usd::text,
    'turn', json_build_array(t.cap_usd::text, (t.spent_usd + t.children_usd)::text,
      (t.reserved_usd + t.children_promised_usd)::text),
    'session', (select json_build_array(s.cap_usd::text, (s.spent_usd + sum(o.children_usd))::text,
      (s.reserved_usd + sum(o.children_promised_usd))::text) from turns o where o.session = s.id),
    'budgets', case when t.short_of is not null then (
      select json_agg(json_build_object('scope', o.scope, 'id', o.id, 'period', o.period, 'window', o."window",
        'cap', o.cap_usd::text, 'spent', coalesce(b.spent_usd, 0)::text, 'drawn', coalesce(b.reserved_usd, 0)::text)
        order by o.scope, o.period)
      from caps_over(t.id) o left join budgets b on b.scope = o.scope and b.id = o.id and b."window" = o."window"
    ) end
  ) end as short
"""


def lacking(turn: UUID, session: UUID, short: dict[str, Any] | None) -> list[Lacking]:
    """`short` is the column of `OF_TURN`."""
    if short is None:
        return []
    needs = Decimal(short["needs"])
    return [*_of("turn", turn, short["turn"], needs), *_of("session", session, short["session"], needs)]


def lacking_shared(short: dict[str, Any] | None) -> list[LackingBudget]:
    """Of the caps that it shares with other turns."""
    if short is None:
        return []
    needs, found = Decimal(short["needs"]), list[LackingBudget]()
    for row in short["budgets"] or ():
        cap, spent, drawn = Decimal(row["cap"]), Decimal(row["spent"]), Decimal(row["drawn"])
        if spent + drawn + needs > cap:
            found.append(
                LackingBudget(
                    scope=row["scope"], subject=row["id"], period=row["period"], window=row["window"],
                    cap_usd=float(cap), spent_usd=float(spent), drawn_usd=float(drawn),
                    left_usd=float(max(cap - spent - drawn, Decimal(0))), needs_usd=float(needs),
                    enough_usd=float(_enough(spent + drawn + needs)),
                )
            )  # fmt: skip
    return found


def _enough(usd: Decimal) -> Decimal:
    return usd.quantize(Decimal("0.0001"), rounding=ROUND_UP)


def _of(cap: Literal["turn", "session"], subject: UUID, texts: list[str | None], needs: Decimal) -> Iterator[Lacking]:
    limit, spent, promised = (None if text is None else Decimal(text) for text in texts)
    if limit is None or spent is None or promised is None or spent + promised + needs <= limit:
        return
    enough = _enough(spent + promised + needs)
    yield Lacking(
        cap=cap, id=subject, cap_usd=float(limit), spent_usd=float(spent), promised_usd=float(promised),
        left_usd=float(max(limit - spent - promised, Decimal(0))), needs_usd=float(needs), enough_usd=float(enough),
    )  # fmt: skip

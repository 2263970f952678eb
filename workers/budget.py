"""What a turn may still spend: steps, money, window. Pure decisions; the database repeats the hard ones.

Sources: economics.md "Caps are hard"; issue "the spine" item 5 (warnings at 70 and 90 %).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import Literal

from shared.values import Refund

Kind = Literal["steps", "money", "window"]
THRESHOLDS = (90, 70)
CODE = "run_code"


@dataclass(frozen=True, slots=True)
class Use:
    """How much of one limit is used; `limit` None or 0 means there is no such limit."""

    kind: Kind
    used: Decimal
    limit: Decimal | None

    @property
    def percent(self) -> int:
        return int(self.used * 100 / self.limit) if self.limit else 0


@dataclass(frozen=True, slots=True)
class Due:
    """A warning to give now: which limit, and the threshold in per cent that it has passed."""

    use: Use
    threshold: int


def due(uses: tuple[Use, ...], warned: dict[str, int]) -> tuple[Due, ...]:
    """The warnings that are due and were not given: each threshold once a turn, the higher one alone if both are
    new."""
    found: list[Due] = []
    for use in uses:
        for threshold in THRESHOLDS:
            if use.percent >= threshold:
                if warned.get(use.kind, 0) < threshold:
                    found.append(Due(use, threshold))
                break
    return tuple(found)


TOLD_AT = (100, 80, 50)
"""Per cent of a cap at which people are told; what the model reads is `THRESHOLDS`."""


def passed(spent: Decimal, cap: Decimal | None) -> int:
    """The highest of `TOLD_AT` that is spent; 0 where none is."""
    return next((at for at in TOLD_AT if cap and spent * 100 >= cap * at), 0)


Scope = Literal["call", "turn", "session", "job", "person", "team"]


@dataclass(frozen=True, slots=True)
class Cap:
    """`window`, `period` and `subject` are of the scopes that many turns share."""

    scope: Scope
    cap: Decimal | None
    spent: Decimal
    reserved: Decimal
    window: str = ""
    period: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Fits:
    reserve: Decimal


@dataclass(frozen=True, slots=True)
class Over:
    """`needs` is what the call may cost."""

    scope: Scope
    message: str
    needs: Decimal


@dataclass(frozen=True, slots=True)
class Unpriced:
    message: str


def reserve(worst: Decimal | None, model: str, caps: tuple[Cap, ...]) -> Fits | Over | Unpriced:
    """What to reserve for a call whose worst case costs `worst` dollars (None = the price is unknown).

    With a cap set and the price unknown the call is refused: an unknown price is never taken for zero.
    """
    if worst is None:
        capped = next((c for c in caps if c.cap is not None), None)
        if capped is None:
            return Fits(Decimal(0))
        return Unpriced(
            f"the {capped.scope} has a cap of ${capped.cap} and the price of {model} is unknown, "
            f"so the call was refused: remove the cap, use a model with a known price, or write its price down in "
            f'nightshift.toml, as [prices.PROVIDER."{model}"]'
        )
    for cap in caps:
        if cap.cap is not None and cap.spent + cap.reserved + worst > cap.cap:
            return Over(cap.scope, _why(cap, cap.cap, worst), worst)
    return Fits(worst)


def _why(cap: Cap, limit: Decimal, worst: Decimal) -> str:
    """Which cap, how far it is used, and what lets the turn go on."""
    if cap.scope == "call":
        return (
            f"the next call may cost up to ${worst:.4f} and one call may cost ${limit}, which is a setting of the "
            f"house that nobody raises for one turn: shorten what is sent, or set NIGHTSHIFT_CALL_CAP_USD"
        )
    used = cap.spent + cap.reserved
    promised = f", ${cap.reserved:.4f} promised to children" if cap.reserved else ""
    return (
        f"the next call may cost up to ${worst:.4f} and the {cap.scope}'s cap of ${limit} has "
        f"${max(limit - used, Decimal(0)):.4f} left (${cap.spent:.4f} spent{promised}): raise cap_usd of the "
        f"{cap.scope} to ${enough(used, worst)} or more to go on"
    )


def why(cap: Cap, worst: Decimal) -> str:
    """Of a shared cap, which must be set: which one, how far it is used, who raises it to what."""
    limit = cap.cap or Decimal(0)
    used = cap.spent + cap.reserved
    period = "for ever" if cap.period == "ever" else f"of {cap.window}"
    drawn = f", ${cap.reserved:.4f} drawn by turns that run" if cap.reserved else ""
    later = "" if cap.period == "ever" else f", or it goes on by itself when the next {cap.period} begins"
    who = "its owner or an admin" if cap.scope == "job" else "an admin"
    return (
        f"the next call may cost up to ${worst:.4f} and the {cap.scope}'s cap of ${limit} {period} has "
        f"${max(limit - used, Decimal(0)):.4f} left (${cap.spent:.4f} spent{drawn}): {who} raises it with "
        f"`nightshift budgets set {cap.scope} {cap.subject} {cap.period} {enough(used, worst)}` or more{later}"
    )


BLOCK = Decimal("0.01")
"""Of what is left of a shared cap: what a turn draws at once, at least its next call (economics.md)."""


def block(cap: Cap, needs: Decimal) -> Decimal | None:
    """How much a turn draws from a shared cap for a call of at most `needs` dollars; None where that does not fit."""
    left = (cap.cap or Decimal(0)) - cap.spent - cap.reserved
    return max(needs, left * BLOCK) if needs <= left else None


def enough(used: Decimal, needs: Decimal) -> Decimal:
    """The least cap, in whole hundredths of a cent, under which the call fits."""
    return (used + needs).quantize(Decimal("0.0001"), rounding=ROUND_UP)


CHILDREN_SHARE = Decimal("0.5")
"""Of what is left under each cap: the rest is for the parent, which has to read what they found and to answer."""
_LEAST = Decimal("0.000001")


def for_each_child(caps: tuple[Cap, ...], children: int) -> Decimal | None:
    """The cap of each of so many children: an equal part of the parent's least remainder. None where nothing is
    capped; zero where too little is left for anything."""
    left = [cap.cap - cap.spent - cap.reserved for cap in caps if cap.cap is not None and cap.scope != "call"]
    if not left:
        return None
    each = max(min(left), Decimal(0)) * CHILDREN_SHARE / children
    return each.quantize(_LEAST, rounding=ROUND_DOWN)


def of_tools(names: Sequence[str], refunds: int, max_steps: int) -> Refund | None:
    """A step that asked for nothing but code does what many steps would: it is not counted. At most as many as the
    budget has are given back, so that a turn that runs nothing but code ends too."""
    return Refund.CODE_ONLY if names and {*names} == {CODE} and refunds < max_steps else None

"""What a turn draws from the caps that many turns share: in blocks, by a transaction of its own before the one that
reserves a call, so that no step writes a row that others write too (economics.md, "Caps are hard").

The invariant: before a call is reserved, what the turn has drawn from each window that holds for it covers the call's
worst case. Whoever changes a shared cap raises `budget_rules.version`, which the statement that reserves compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import cast

import structlog
from psycopg.rows import DictRow

from shared.errors import LeaseLost, StoreUnavailable
from shared.store.arrays import array
from shared.store.pool import Connection
from shared.store.statements import budgets, every, money, one, run, turn_end
from workers import budget
from workers.held import Block, Draws, Held
from workers.ports import Ports

log = structlog.get_logger("drawing")


def caps(ports: Ports, held: Held) -> tuple[budget.Cap, ...]:
    """The shared caps that hold for this turn, as they stood when it last drew."""
    return tuple(
        budget.Cap(cast("budget.Scope", block.scope), block.cap, Decimal(0), block.amount, block.window)
        for block in _known(ports, held).blocks
    )


def cover(ports: Ports, held: Held, needs: Decimal) -> budget.Fits | budget.Over:
    """See to it that a call of at most `needs` dollars is drawn for. Over: what was drawn is given back, and which cap
    has no room. Raises LeaseLost."""
    if not held.money.budget_version:  # nobody has ever set a shared cap
        return budget.Fits(needs)
    known = held.draws
    if known is not None and known.version == held.money.budget_version and _enough(held, known, needs):
        return budget.Fits(needs)
    return _draw(ports, held, needs)


def give_back(ports: Ports, held: Held) -> None:
    """After the turn has ended, parked or been handed back: what it did not use is free for others now. The sweep does
    the same for whoever does not come to it."""
    if held.draws is None or not held.draws.blocks:
        return
    held.draws = None
    try:
        ports.database.read(lambda c: _returned(c, held))
    except StoreUnavailable as late:  # the turn is over, and nothing of it may fail any more
        log.warning("draws.left", turn=str(held.claim.turn), code=late.code)


def _returned(connection: Connection, held: Held) -> None:
    with connection.transaction():
        run(connection, money.LOCK_SESSION, {"session": held.claim.session})
        run(connection, budgets.LOCK_WINDOWS, {"turn": held.claim.turn})
        run(connection, budgets.CLOSE_DRAWS, {"turn": held.claim.turn, "held": False})


def _known(ports: Ports, held: Held) -> Draws:
    """As the rows have it, where memory is of another version of the caps. Nothing is drawn here."""
    if not held.money.budget_version:
        return Draws(0, ())
    if held.draws is None or held.draws.version != held.money.budget_version:
        rows = ports.database.read(lambda c: every(c, budgets.BUDGETS_OVER, {"turn": held.claim.turn}))
        return _draws(rows, tuple(row["amount_usd"] or Decimal(0) for row in rows))
    return held.draws


def _enough(held: Held, known: Draws, needs: Decimal) -> bool:
    now, spent = held.now(), held.money.turn_spent
    return all(now < block.until and block.amount - (spent - block.from_usd) >= needs for block in known.blocks)


def _draw(ports: Ports, held: Held, needs: Decimal) -> budget.Fits | budget.Over:
    """Give back what is left of the turn's blocks and draw new ones, all or none."""
    own = {"session": held.claim.session, "fence": held.claim.fence}
    turn = {"turn": held.claim.turn}

    def work(connection: Connection) -> budget.Over | Draws:
        with connection.transaction():
            if one(connection, turn_end.LOCK_OWN, own) is None:
                raise LeaseLost
            run(connection, budgets.OPEN_WINDOWS, turn)
            run(connection, budgets.LOCK_WINDOWS, turn)
            run(connection, budgets.CLOSE_DRAWS, turn | {"held": True})
            rows = every(connection, budgets.BUDGETS_OVER, turn)
            found = [(row, _cap(row)) for row in rows if row["scope"] is not None]
            amounts = [budget.block(cap, needs) for _, cap in found]
            for (_, cap), amount in zip(found, amounts, strict=True):
                if amount is None:
                    held.money.budget_version = rows[0]["version"]
                    return budget.Over(cap.scope, budget.why(cap, needs), needs)
            taken = tuple(amount for amount in amounts if amount is not None)
            if taken:
                run(connection, budgets.TAKE_DRAWS, turn | _blocks([row for row, _ in found], taken))
            return _draws(rows, taken)

    drawn = ports.database.read(work)
    if isinstance(drawn, budget.Over):
        held.draws = None
        return drawn
    held.draws, held.money.budget_version = drawn, drawn.version
    return budget.Fits(needs)


def _cap(row: DictRow) -> budget.Cap:
    scope = cast("budget.Scope", row["scope"])
    spent, reserved = row["spent_usd"] or Decimal(0), row["reserved_usd"] or Decimal(0)
    return budget.Cap(scope, row["cap_usd"], spent, reserved, row["window"], row["period"], row["id"])


def _blocks(rows: Sequence[DictRow], amounts: Sequence[Decimal]) -> dict[str, object]:
    return {
        "b_scope": array(row["scope"] for row in rows), "b_id": array(row["id"] for row in rows),
        "b_window": array(row["window"] for row in rows), "b_amount": array(map(str, amounts)),
        "b_cap": array(str(row["cap_usd"]) for row in rows),
    }  # fmt: skip


def _draws(rows: Sequence[DictRow], amounts: Sequence[Decimal]) -> Draws:
    standing = [row for row in rows if row["scope"] is not None]
    blocks = tuple(
        Block(row["scope"], row["window"], row["until"], row["cap_usd"], amount, row["turn_spent"])
        for row, amount in zip(standing, amounts, strict=False)
    )
    return Draws(rows[0]["version"], blocks)

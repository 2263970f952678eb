"""What a turn has used of what it may use: its caps in dollars, its steps, its window. Memory of the rows, read
anew where the rows say something else."""

from __future__ import annotations

from decimal import Decimal

from shared.request import estimate
from shared.request.assembled import Request
from shared.store.statements import money as statements
from shared.store.statements import one
from workers import budget
from workers.gathering import Gathered
from workers.held import Held, Money
from workers.ports import Ports


def caps(ports: Ports, held: Held) -> tuple[budget.Cap, ...]:
    """The caps that the next call counts against. What is promised to children is reserved in the caps above them."""
    money = held.money
    turn = money.turn_spent + money.children_spent
    session = money.session_spent + money.children_spent + money.others_children
    return (
        budget.Cap("call", ports.settings.call_cap_usd, Decimal(0), Decimal(0)),
        budget.Cap("turn", money.turn_cap, turn, money.turn_reserved + money.promised),
        budget.Cap("session", money.session_cap, session, money.session_reserved + money.promised),
    )


def uses(held: Held, base: Request, gathered: Gathered, window: int) -> tuple[budget.Use, ...]:
    """What a warning may be due for: of the two caps the one that has less left."""
    text = "".join(m.content for m in gathered.messages)
    size = estimate.estimate(base, held.claim.model) + estimate.estimate_text(text, held.claim.model)
    size = estimate.projected(held.baseline, size)
    cap, spent = held.money.turn_cap, held.money.turn_spent + held.money.children_spent
    session_cap = held.money.session_cap
    in_session = held.money.session_spent + held.money.children_spent + held.money.others_children
    if session_cap is not None and (cap is None or session_cap - in_session < cap - spent):
        cap, spent = session_cap, in_session
    return (
        budget.Use("steps", Decimal(held.steps_used), Decimal(held.claim.max_steps)),
        budget.Use("money", spent, cap),
        budget.Use("window", Decimal(size), Decimal(window)),
    )


def refresh(ports: Ports, held: Held) -> None:
    """Take over what the rows say: a cap was changed, or a child in the background gave back."""
    row = ports.database.read(lambda c: one(c, statements.MONEY_OF, {"turn": held.claim.turn}))
    assert row is not None, "a turn that is held is there"
    held.money = Money.of(row)

"""A decision in the rows: stubs as the edits of one statement, or a line that tells what was decided; and its event."""

from __future__ import annotations

from typing import Any

from shared.request import canonical
from shared.store.arrays import array
from shared.store.statements import every
from shared.store.statements import reduction as statements
from shared.values import EventKind
from workers import fence
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.reduction.prune import Plan
from workers.reduction.state import Context


def prune(
    ports: Ports, held: Held, plan: Plan, context: Context, pinned: int | None, cause: str,
    arithmetic: dict[str, Any], before: int,
) -> int:  # fmt: skip
    """Commit the stubs with `context`; the newest edit's id. Raises LeaseLost."""
    values = {
        **_decided(held, context, cause, arithmetic, before), "after": before - plan.drop, "pinned": pinned,
        "e_message": array(stub.message for stub in plan.stubs), "e_block": array(stub.block for stub in plan.stubs),
        "e_line": array(stub.line for stub in plan.stubs), "e_before": array(stub.before for stub in plan.stubs),
        "e_after": array(stub.after for stub in plan.stubs), "known": held.last_edit,
    }  # fmt: skip
    last_edit = fence.write(ports, held, statements.PRUNE, values, landed=statements.PRUNED)["last_edit"]
    tell(ports, held, "prune", cause, arithmetic, before, before - plan.drop)
    return last_edit


def note(
    ports: Ports, held: Held, decision: str, context: Context, cause: str, arithmetic: dict[str, Any], before: int
) -> None:
    """Commit `context` and a row that says what was decided. Sent twice, it says so twice. Raises LeaseLost."""
    fence.write(
        ports, held, statements.NOTE, {**_decided(held, context, cause, arithmetic, before), "decision": decision}
    )
    tell(ports, held, decision, cause, arithmetic, before, before)


def tell(
    ports: Ports, held: Held, decision: str, cause: str, arithmetic: dict[str, Any], before: int, after: int
) -> None:
    emit(
        ports, held, EventKind.CONTEXT_REDUCED, decision=decision, cause=cause, tokens_before=before,
        tokens_after=after, arithmetic=arithmetic,
    )  # fmt: skip


def epoch_marks(ports: Ports, held: Held) -> str | None:
    """The marks of the first call since the last edit; None where there was none."""
    values = {"session": held.claim.session, "last_edit": held.last_edit}
    found = ports.database.read(lambda c: every(c, statements.EPOCH_MARKS, values))
    return found[0]["marks"] if found else None


def _decided(held: Held, context: Context, cause: str, arithmetic: dict[str, Any], before: int) -> dict[str, Any]:
    return {
        "step": held.step + 1, "cause": cause, "arithmetic": canonical.dump(arithmetic), "before": before,
        **context.params(),
    }  # fmt: skip

"""A request too large in bytes: its largest blocks become a line each, and nothing is summarised. No token count says
that it was too large, so no threshold and no breaker has a word in it."""

from __future__ import annotations

from dataclasses import replace

from workers import prefixing, reserving
from workers.gathering import NOTHING
from workers.held import Held
from workers.ports import Ports
from workers.reduction import look, prune, write
from workers.reduction.prune import Plan

CAUSE = "too_large"
MOST = 3
"""How often in a step: what is left then is no longer in a few large blocks."""
TAKEN = 0.5
"""Of the body's bytes, about, that is taken out at once: what is refused at 32 MB may be so at 16."""


def largest(ports: Ports, held: Held, body_bytes: int) -> bool:
    """Write stubs for the largest results and arguments, wherever they stand. False where none is large, or where that
    has not helped before. Everything gathered must be committed. Raises LeaseLost."""
    held.spilled += 1
    if held.spilled > MOST:
        return False
    seen = look.seen(ports.settings, held, reserving.standing(ports, held), NOTHING)
    request = prefixing.cold_request(ports, held)
    plan = prune.plan(request, len(request.pieces), seen.per_weight, held.claim.tools)
    if plan is None:
        return False
    whole = seen.per_weight * sum(request.weights)
    chosen: list[prune.Stub] = []
    dropped = 0
    for stub in sorted(plan.stubs, key=lambda one: one.before - one.after, reverse=True):
        if chosen and dropped >= TAKEN * whole:
            break
        chosen.append(stub)
        dropped += stub.before - stub.after
    chosen.sort(key=lambda one: (one.message, one.block))
    made = Plan(tuple(chosen), dropped, chosen[0].message, plan.end)
    told = {"bytes": body_bytes, "dropped": dropped, "stubbed": len(chosen)}
    context = replace(held.context, meter=0.0)
    last_edit = write.prune(ports, held, made, context, None, CAUSE, told, seen.sizes.prompt)
    held.context = context
    held.new_epoch(last_edit)
    return True

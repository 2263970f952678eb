"""A conversation that nobody has spoken in for long, summarised by a housekeeping turn: what is said next is said on a
small prompt, and where the provider has forgotten it the rewrite costs nothing more."""

from __future__ import annotations

from dataclasses import replace

from workers import reserving
from workers.compaction import run as compaction
from workers.gathering import NOTHING
from workers.held import Held
from workers.ports import Ports
from workers.reduction import decide, look
from workers.reduction.decide import Compact


def compact(ports: Ports, held: Held) -> None:
    """Summarise if a person wants it of idle conversations and this one still is: the scheduler may have looked before
    somebody spoke. A request that was carried out by this turn is no idleness. Raises LeaseLost."""
    settings = ports.settings
    if settings.idle_compaction_s is None or held.prefix is None or held.served:
        return
    seen = look.seen(settings, held, reserving.standing(ports, held), NOTHING)
    if seen.gap.seconds is None or seen.gap.seconds < settings.idle_compaction_s or seen.sizes.floor >= seen.sizes.room:
        return
    rules = replace(look.rules(settings), idle=settings.idle_compaction_tokens)
    found = decide.decide(held.context, seen.prices, seen.gap, seen.sizes, rules)
    if not isinstance(found, Compact) or found.cause != decide.IDLE:
        return
    held.context = replace(held.context, ttl=found.ttl)
    told = decide.arithmetic(held.context, seen.prices, seen.gap, seen.sizes)
    told |= {"idle_s": settings.idle_compaction_s, "idle_from": settings.idle_compaction_tokens}
    compaction.compact(ports, held, found.cause, told, look.tail(settings))

"""Whether the past is to be rewritten now, asked before each call of the conversation; and the rewriting."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, assert_never

from shared.request import cache_plan, estimate
from shared.request.assembled import Request
from shared.request.cache_plan import ANTHROPIC
from shared.request.marked import Place, Ttl, read_marks
from shared.store.statements import every
from shared.store.statements import rewind as past
from workers import anchoring, prefixing, reserving
from workers.anchoring import Sent
from workers.compaction import run as compaction
from workers.gathering import NOTHING, Gathered
from workers.held import Held
from workers.ports import Ports
from workers.providers.replies import Usage
from workers.reduction import birth, decide, full, look, meters, prune, sizes, write
from workers.reduction.decide import COLD_LEAST, WARM_LEAST, Compact, Keep, Prune, SetTtl
from workers.reduction.look import Seen
from workers.reduction.meters import Gap

OVERFLOW = "overflow"
_CALLS = 200
"""How many calls are looked at for the newest one that an edit leaves whole."""
_MOST_OVERFLOWS = 2
"""A step is made shorter so many times before it is given up."""
_REST = timedelta(minutes=1)
"""After a compaction that could leave nothing out: the next step would ask in vain."""


def consider(ports: Ports, held: Held, gathered: Gathered) -> Gathered | None:
    """What is to be reserved with the next call, results that stand already as lines; None where what was gathered had
    to be committed first, and the boundary is to be looked at again. Raises LeaseLost."""
    request = reserving.standing(ports, held)
    if ports.settings.stub_at_birth:
        held.tally = sizes.follow(held.tally, request)
        gathered = birth.stubbed(gathered, held.tally.raw)
    seen = look.seen(ports.settings, held, request, gathered)
    if not held.carried:
        held.context = meters.carried(held.context, seen.prices, seen.gap, seen.sizes)
        held.carried = True
    found = decide.decide(held.context, seen.prices, seen.gap, seen.sizes, look.rules(ports.settings))
    match found:
        case Keep():
            return gathered
        case SetTtl(ttl):
            _set_ttl(ports, held, seen, ttl)
            return gathered
        case Prune(cause, ttl):
            least = COLD_LEAST if seen.gap.cold else WARM_LEAST
            if not _prune(ports, held, seen, cause, ttl, least=least, coming=len(gathered.messages)):
                held.context = replace(held.context, meter=0.0)  # the guess was wrong: not before it has filled again
            return gathered
        case Compact(cause, ttl):
            return _compact(ports, held, seen, gathered, cause, ttl)
        case _:
            assert_never(found)


def overflowed(ports: Ports, held: Held) -> str | None:
    """The provider found the prompt too long, or it does not fit by our own count. None where it is shorter now; else
    why it cannot be, a sentence for the person. Everything gathered must be committed. Raises LeaseLost."""
    held.overflows += 1
    seen = look.seen(ports.settings, held, reserving.standing(ports, held), NOTHING)
    known = held.limits
    why = full.sentence(seen.sizes, held.claim.model, known.window)
    if held.overflows > _MOST_OVERFLOWS or seen.sizes.floor >= known.window:
        return why
    if ports.settings.compact_on_overflow:
        came = compaction.compact(ports, held, OVERFLOW, _arithmetic(held, seen), look.tail(ports.settings))
        if isinstance(came, compaction.Compacted) or (isinstance(came, compaction.Skipped) and came.edit is not None):
            return None
        why = came.message if isinstance(came, compaction.Blocked) else why
    return None if _prune_at_once(ports, held, seen) else why


def due_after(ports: Ports, held: Held, usage: Usage | None) -> Compact | None:
    """Whether the turn that this answer ends leaves a conversation that should be summarised while the provider still
    has it. Stubs can wait for the next call: they cost it no more than they would cost now."""
    if usage is None or held.request is None or held.tally is None:
        return None
    prompt, room = usage.prompt + usage.output, look.threshold(ports.settings, held)
    per_weight = estimate.factor(held.claim.model) * look.scale(held)
    measured = sizes.measure(held.tally, look.tail(ports.settings), per_weight, coming=1, prompt=prompt, room=room)
    known = look.relative(held, prompt)
    rules = replace(look.rules(ports.settings), micro=ports.settings.micro_compaction)
    found = decide.decide(held.context, known, Gap(0.0, cold=False), measured, rules)
    waits = held.no_compaction_before is not None and held.now() < held.no_compaction_before
    return found if isinstance(found, Compact) and not waits and measured.floor < room else None


def after_turn(ports: Ports, held: Held, found: Compact) -> None:
    """Its answer is recorded; the turn ends when this is done, whatever came of it. Raises LeaseLost."""
    seen = look.seen(ports.settings, held, reserving.standing(ports, held), NOTHING)
    held.context = replace(held.context, ttl=found.ttl)
    compaction.compact(ports, held, found.cause, _arithmetic(held, seen), look.tail(ports.settings))


def _prune_at_once(ports: Ports, held: Held, seen: Seen) -> bool:
    return _prune(ports, held, seen, OVERFLOW, held.context.ttl, least=1, coming=0)


def _set_ttl(ports: Ports, held: Held, seen: Seen, ttl: Ttl) -> None:
    told = {**_arithmetic(held, seen), "set": ttl}
    held.context = replace(held.context, ttl=ttl)
    write.note(ports, held, "set_ttl", held.context, "holding cost", told, seen.sizes.prompt)


def _compact(ports: Ports, held: Held, seen: Seen, gathered: Gathered, cause: str, ttl: Ttl) -> Gathered | None:
    """A summary; where that may not be, or does not help, stubs where they are worth their price."""
    over = seen.sizes.prompt >= seen.sizes.room
    floor = full.of_floor(seen.sizes, held.claim.model, held.limits.window)
    if floor is not None:
        _tell_floor(ports, held, seen, floor)
    wait = held.no_compaction_before
    if floor is not None or (wait is not None and held.now() < wait):
        least = COLD_LEAST if seen.gap.cold else WARM_LEAST
        # Each turn brings about as much as the last prune took out: at the threshold alone it would be done every turn,
        # and each time the cache is lost. What does not fit the window at all is `overflowed`'s.
        worth = seen.gap.cold or decide.paid_for(held.context, seen.prices, seen.sizes)
        if over and worth and seen.sizes.drop >= least:
            _prune(ports, held, seen, cause, ttl, least=least, coming=len(gathered.messages))
        return gathered
    reserving.commit_rows(ports, held, gathered)
    held.context = replace(held.context, ttl=ttl)
    match compaction.compact(ports, held, cause, _arithmetic(held, seen), look.tail(ports.settings)):
        case compaction.Blocked(until, _):
            held.no_compaction_before = until
        case compaction.Skipped(_, None) | compaction.Failed():
            held.no_compaction_before = held.now() + _REST
        case compaction.Skipped() | compaction.Compacted():
            pass  # whether the next one may follow at once is the breaker's to say
    return None


def _tell_floor(ports: Ports, held: Held, seen: Seen, message: str) -> None:
    """Once a turn: nothing that is left out of the conversation would help."""
    if held.told_floor:
        return
    held.told_floor = True
    told = {**_arithmetic(held, seen), "message": message}
    write.note(ports, held, "blocked", held.context, "floor", told, seen.sizes.prompt)


def _prune(ports: Ports, held: Held, seen: Seen, cause: str, ttl: Ttl, *, least: int, coming: int) -> bool:
    """Write stubs for everything outside the tail, chosen anew from the rows as they stand. False where that would take
    out less than `least` tokens: then nothing is written."""
    request = prefixing.cold_request(ports, held)
    tally = sizes.follow(None, request)
    prompt, room = seen.sizes.prompt, seen.sizes.room
    exact = sizes.measure(tally, look.tail(ports.settings), seen.per_weight, coming=coming, prompt=prompt, room=room)
    plan = prune.plan(request, tally.passed, seen.per_weight, held.claim.tools)
    if plan is None or plan.drop < least:
        return False
    told = {**_arithmetic(held, replace(seen, sizes=exact)), "dropped": plan.drop, "stubbed": len(plan.stubs)}
    pinned = None if seen.gap.cold else _still_kept(ports, held, request, plan.first)
    context = meters.pruned(replace(held.context, ttl=ttl), before=prompt, after=prompt - plan.drop, trigger=WARM_LEAST)
    last_edit = write.prune(ports, held, plan, context, pinned, cause, told, prompt)
    held.context = context
    held.new_epoch(last_edit, pinned=pinned, region_end=_region_end(request, tally.passed, plan.first))
    return True


def _still_kept(ports: Ports, held: Held, request: Request, first: int) -> int | None:
    """The newest row before the first stub at which the provider has an entry: the end of an earlier call, or of the
    region that the last prune edited."""
    values = {"session": held.claim.session, "cut": first, "limit": _CALLS}
    sent = [Sent(**row) for row in ports.database.read(lambda c: every(c, past.SENT, values))]
    anchor = anchoring.find(request, sent, held.claim.model) if sent else None
    marks = write.epoch_marks(ports, held)
    ends = [one.at for one in read_marks(marks or "[]") if one.place is Place.MESSAGE and 0 < one.at < first]
    ends += [anchor.pinned] if anchor is not None and anchor.pinned is not None else []
    return max(ends, default=None)


def _region_end(request: Request, start: int, first: int) -> int | None:
    """The last row outside the tail that can carry a mark."""
    at = cache_plan.boundary_before(request.pieces, start, ANTHROPIC)
    return request.pieces[at].id if at is not None and request.pieces[at].id >= first else None


def _arithmetic(held: Held, seen: Seen) -> dict[str, Any]:
    return decide.arithmetic(held.context, seen.prices, seen.gap, seen.sizes)

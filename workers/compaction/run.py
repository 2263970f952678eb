"""One compaction, from the decision to the edit: may it be tried, what it covers, the summariser's call, the commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from shared.request import estimate
from shared.request.projection import Prefix
from workers import prefixing
from workers.compaction import breaker, commit, fallback, framed, instruction, material, remember, span, summarise
from workers.compaction.breaker import Last
from workers.compaction.commit import Edit, Row, Why
from workers.compaction.material import Seen
from workers.compaction.span import Span
from workers.held import Held
from workers.ports import Ports
from workers.reduction import meters
from workers.reduction.decide import IDLE, MICRO, WARM_LEAST
from workers.reduction.sizes import Tail

ASKED = "asked"
"""The cause of a compaction that a person wants: the breaker stops only what nobody asked for."""
OVERFLOW = "overflow"
UNPRESSED = frozenset({MICRO, IDLE})
"""Nothing has to become smaller: where the model does not make the summary, the past stays as it is."""
WORTH_A_CALL = 4_000
"""Tokens not yet in any summary, from which the model is asked; less is dropped without it."""
WORTH_ASKING = 1_000
"""The same where a person wants it."""
SHORT = "what stands between the first request and the newest messages is short"
LOST, RESTING = "lost", "summariser_rests"
"""Why the model was not asked: a worker was lost at it within the last minutes; it failed not long ago."""
TAIL = Tail()
FLOOR_PERCENT = 50
"""From here on it is tools and system prompt that leave no room, and a person is told so."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A summary stands for messages `first`..`last`. `fallback` is None where the model wrote it, else why it did not
    (a code of `checks` or of the wire, "lost", a cap). Tokens are of the whole prompt: before as projected, after as
    estimated."""

    edit: int
    first: int
    last: int
    tokens_before: int
    tokens_after: int
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The middle was too small to be worth a call. `edit` is None where nothing could be left out at all, else the
    edit that dropped it without the model. A verdict is due either way."""

    reason: str
    edit: int | None = None
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class Blocked:
    """The breaker is shut: nothing was tried. `message` is a sentence for the person: why, until when, what to do."""

    until: datetime
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was edited, because the turn has to stop (`code` is the reason of the interrupt): look at
    `held.interrupted()`. A summariser that fails is no such case; it is `Compacted` with its `fallback`."""

    code: str
    message: str


def compact(
    ports: Ports, held: Held, cause: str, arithmetic: Mapping[str, object] | None = None, tail: Tail = TAIL
) -> Compacted | Skipped | Blocked | Failed:
    """Let a summary stand for the middle of the conversation. Raises LeaseLost.

    What was gathered must be committed before (`reserving.commit_rows`): only then are the newest calls answered in
    what the summariser reads. `cause` is a word of the decision ("meter", "threshold", "overflow", "cold", "asked");
    `arithmetic` goes into `reductions` and the event `context.reduced`, as JSON.

    Afterwards the holder's memory of the request is gone where anything was edited (`held.new_epoch`), and
    `held.context` is what the row has.
    """
    if held.prefix is None:
        return Skipped("no model has been asked anything yet")
    row = commit.read(ports, held)
    unasked = None  # why the model is not to be asked
    if cause == ASKED:
        context = held.context
    else:
        decided = breaker.blocked(held.context, row.attempt, row.now, fits=row.fits)
        if isinstance(decided, breaker.Free):
            context = decided.context
        elif _was_lost(row, cause) and not breaker.tripped(held.context):
            context, unasked = held.context, LOST
        else:
            return _shut(ports, held, cause, arithmetic, decided)
        if row.summary_after is not None and row.now < row.summary_after:
            if cause in UNPRESSED:
                return Skipped(RESTING)
            unasked = unasked or RESTING
    commit.begin(ports, held, context)
    seen = material.read(ports, held, held.prefix)
    why = Why(cause, arithmetic or {}, seen.tokens)
    found = span.choose(material.entries(seen), tail, WARM_LEAST if cause == MICRO else None)
    if found is None:
        return _nothing(ports, held, why, "there is nothing between the first request and the newest messages")
    return _replace(ports, held, why, seen, found, row, unasked)


def _was_lost(row: Row, cause: str) -> bool:
    """The conversation does not fit, and its worker died at the summary that was to make it fit: the turn must not end
    for that. What stands in for the summary needs no model, and is no second call within the five minutes."""
    return cause == OVERFLOW and row.attempt.last is Last.OPEN


def _replace(
    ports: Ports, held: Held, why: Why, seen: Seen, found: Span, row: Row, unasked: str | None
) -> Compacted | Skipped | Failed:
    known = held.limits
    answer = min(ports.settings.max_output_tokens, known.max_output)
    budget = instruction.budget(found.tokens, known.window, answer)
    if found.fresh < (WORTH_ASKING if why.cause == ASKED else WORTH_A_CALL):
        if why.cause == ASKED or why.cause in UNPRESSED:  # what would be dropped is worth more than its room
            return _nothing(ports, held, why, SHORT)
        return _drop(ports, held, why, seen, found, budget)
    said, memory = (summarise.Unsaid(unasked) if unasked else None), None
    if said is None:
        memory = remember.called(ports, held)
        until = material.begins_after(seen, found) if why.cause == MICRO else None
        said = summarise.summarise(ports, held, seen, found, budget, row.summary_failures, memory, until)
    tools = held.claim.tools
    match said:
        case summarise.Stopped(reason):
            return Failed(reason, "the turn has to stop, so nothing was compacted")
        case summarise.Said(words):
            body, facts = remember.split(words) if memory else (words, ())
            text = framed.frame(body, tools, by_model=True)
            new = _edit(ports, held, seen, found, framed.remembered(text, facts, ()), Last.SUMMARY)
            runway = meters.runway(why.tokens_before, new.tokens_after, WARM_LEAST) if why.cause == MICRO else 0
            new = replace(new, text=text, facts=facts, memory=memory, regrow_to=runway)
        case summarise.Unsaid(code, rest_s) if why.cause in UNPRESSED:
            return _nothing(ports, held, why, f"the summary failed ({code})", failed=True, rest_s=rest_s)
        case summarise.Unsaid(code, rest_s):
            words = fallback.text(material.of(seen, found), budget, tools)
            text = framed.frame(words, tools, by_model=False)
            new = _edit(ports, held, seen, found, text, Last.FALLBACK, code, rest_s)
        case _:
            assert_never(said)
    edit = commit.edit(ports, held, why, new)
    return Compacted(edit, found.first, found.last, why.tokens_before, new.tokens_after, new.fallback)


def _drop(ports: Ports, held: Held, why: Why, seen: Seen, found: Span, budget: int) -> Skipped:
    """Too little to be worth a call: the model is not asked, and what it would have said is not missed."""
    words = fallback.text(material.of(seen, found), min(budget, found.tokens // 2), held.claim.tools)
    text = framed.frame(words, held.claim.tools, by_model=False)
    if estimate.estimate_text(text, held.claim.model) >= found.tokens:
        return _nothing(ports, held, why, SHORT)
    new = _edit(ports, held, seen, found, text, Last.DROPPED)
    edit = commit.edit(ports, held, why, new)
    return Skipped("too little to be worth a summary: dropped", edit, why.tokens_before, new.tokens_after)


def _nothing(ports: Ports, held: Held, why: Why, reason: str, *, failed: bool = False, rest_s: float = 0.0) -> Skipped:
    commit.nothing(ports, held, why, reason, failed=failed, rest_s=rest_s)
    return Skipped(reason, None, why.tokens_before, why.tokens_before)


def _edit(
    ports: Ports, held: Held, seen: Seen, found: Span, text: str, last: Last, code: str | None = None, rest_s: float = 0
) -> Edit:
    """With the system prompt and the tools as they are now: only here may they become others."""
    built = prefixing.build_now(ports, held)
    prefix = Prefix(
        built.digest, built.system.system_text, built.system.stable_length, built.system.context_length,
        built.tools_text,
    )  # fmt: skip
    request = material.after(seen, found, text, prefix)
    return Edit(found, text, built, last, material.projected(held, request), code, rest_s)


def _shut(
    ports: Ports, held: Held, cause: str, arithmetic: Mapping[str, object] | None, found: breaker.Shut
) -> Blocked:
    message = f"compaction waits until {found.until:%H:%M} UTC: {found.why}. {_heavy(held)}"
    size = 0 if held.request is None else material.projected(held, held.request)
    commit.shut(ports, held, Why(cause, arithmetic or {}, size), message, found.until)
    return Blocked(found.until, message)


def _heavy(held: Held) -> str:
    """What fills the window, as far as memory knows it, and what a person can do."""
    size = held.limits.window
    remedy = "Go on in a new session, or with a model that has a larger window, or ask for /compact."
    if held.request is None:
        return remedy
    floor = estimate.weigh_floor(held.request.tools_text, held.request.system) * material.per_weight(held)
    share = round(100 * floor / size)
    if share < FLOOR_PERCENT:
        return f"Tools and system prompt take {share} % of the window. {remedy}"
    return (
        f"Tools and system prompt alone take {share} % of the window, and no compaction makes them smaller: give the "
        "session fewer tools, shorten what it is told at its start, or use a model with a larger window."
    )

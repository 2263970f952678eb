"""What is known before a call: how large it will be, what it carries, what tokens cost, how long ago the last was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from shared import models
from shared.request import estimate
from shared.request.assembled import Request
from shared.settings import Settings
from workers.gathering import Gathered
from workers.held import Held
from workers.providers import prices
from workers.providers.prices import Relative
from workers.reduction import meters, sizes
from workers.reduction.decide import Rules
from workers.reduction.meters import Gap
from workers.reduction.sizes import Sizes, Tail


@dataclass(frozen=True, slots=True)
class Seen:
    sizes: Sizes
    prices: Relative
    gap: Gap
    per_weight: float
    """Turns an estimate's weight into tokens as billed."""


def seen(settings: Settings, held: Held, request: Request, gathered: Gathered) -> Seen:
    """Of the call that would go out with `request`, the rows that it does not hold yet, and `gathered`."""
    model = held.claim.model
    per_weight = estimate.factor(model) * scale(held)
    coming = [row.sent or row.content for row in held.unread]
    coming += [message.sent or message.content for message in gathered.messages]
    counted = estimate.estimate(request, model) + sum(estimate.estimate_text(text, model) for text in coming)
    prompt = estimate.projected(held.baseline, counted)
    held.tally = sizes.follow(held.tally, request)
    measured = sizes.measure(
        held.tally, tail(settings), per_weight, coming=len(coming), prompt=prompt, room=threshold(settings, held)
    )
    return Seen(measured, relative(held, prompt), meters.gap(held.context, held.now()), per_weight)


def relative(held: Held, prompt: int) -> Relative:
    """The model's prices relative to its input, for a prompt of so many tokens."""
    claim, now = held.claim, datetime.now(UTC)
    return prices.relative(claim.model, prompt, now, provider=claim.provider, own=held.prices) or meters.ASSUMED


def scale(held: Held) -> float:
    """Tokens as billed for each one estimated, as the last bill had it."""
    return held.baseline[1] / held.baseline[0] if held.baseline and held.baseline[0] else 1.0


def threshold(settings: Settings, held: Held) -> int:
    """The size in tokens at which the conversation must become smaller."""
    return models.room(
        held.limits, settings.max_output_tokens, calibrated=held.baseline is not None,
        share=settings.context_threshold,
    )  # fmt: skip


def tail(settings: Settings) -> Tail:
    return Tail(settings.tail_messages, settings.tail_tokens)


def rules(settings: Settings) -> Rules:
    return Rules(
        prune_cold=settings.prune_cold,
        prune_warm=settings.prune_warm,
        compact_by_meter=settings.compact_by_meter,
        compact_at_threshold=settings.compact_at_threshold,
    )

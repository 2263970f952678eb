"""The worker's events for operators, made from what it just did; and the subscribers that the settings ask for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from shared.settings import Settings
from shared.telemetry.events import CallEnded, ToolRan, TurnLeft, tool_name
from shared.telemetry.otel import OpenTelemetry
from shared.telemetry.prometheus import Prometheus
from shared.telemetry.ring import Subscriber, Telemetry
from shared.values import RunStatus, TurnStatus

if TYPE_CHECKING:  # those who are told of here tell it themselves
    from workers.held import Held
    from workers.outgoing import Finished
    from workers.recording import Outcome
    from workers.reserving import Planned


def begin(settings: Settings, boot_id: UUID) -> tuple[Telemetry, Callable[[], None]]:
    """What to emit to, and how it ends. Raises SettingsError for an exporter that cannot be."""
    made: list[Prometheus | OpenTelemetry] = []
    if settings.metrics_listen:
        prometheus = Prometheus()
        prometheus.serve(settings.metrics_listen)
        made.append(prometheus)
    if settings.otlp_endpoint:
        made.append(OpenTelemetry(settings.otlp_endpoint, str(boot_id)))
    subscribers: list[Subscriber] = [*made]
    telemetry = Telemetry(subscribers)

    def end() -> None:
        telemetry.close()
        for one in made:
            one.close()

    return telemetry, end


def tool_ran(telemetry: Telemetry, held: Held, finished: Finished) -> None:
    telemetry.emit(
        ToolRan(
            held.claim.session, held.claim.turn, finished.step, finished.ordinal, tool_name(finished.tool),
            RunStatus(finished.status), len(finished.text),
        )
    )  # fmt: skip


def call_ended(telemetry: Telemetry, held: Held, planned: Planned, outcome: Outcome) -> None:
    usage = outcome.usage
    telemetry.emit(
        CallEnded(
            session=held.claim.session,
            turn=held.claim.turn,
            call=planned.id,
            step=planned.step,
            purpose=planned.purpose,
            status=outcome.status,
            input_tokens=0 if usage is None else usage.input,
            output_tokens=0 if usage is None else usage.output,
            cache_read_tokens=0 if usage is None else usage.cache_read,
            cache_write_tokens=0 if usage is None else usage.cache_write_5m + usage.cache_write_1h,
            cost_usd=None if outcome.cost is None else float(outcome.cost),
            first_token_s=None if outcome.first_token_ms is None else outcome.first_token_ms / 1000,
        )
    )


def turn_left(telemetry: Telemetry, held: Held, status: TurnStatus) -> None:
    claim = held.claim
    seconds = time.monotonic() - held.claimed_at
    telemetry.emit(TurnLeft(claim.session, claim.turn, claim.turn_class, status, held.steps, seconds))

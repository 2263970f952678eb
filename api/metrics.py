"""The figures in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from api.services import Services
from api.vitals import Figures
from shared.store.pool import retries
from shared.values import CallStatus, Purpose, TurnClass, TurnStatus


def text(services: Services, figures: Figures) -> bytes:
    """All metrics of this process and of the database it serves."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*_of_database(figures), *_of_process(services)]))
    return generate_latest(registry)


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _gauge(name: str, help_: str, value: float) -> Metric:
    return GaugeMetricFamily(f"nightshift_{name}", help_, value=value)


def _of_database(figures: Figures) -> Iterable[Metric]:
    yield _gauge("database_up", "1 where Postgres answered; else the figures from it are the last known", figures.up)
    yield _gauge("workers_alive", "Workers with a live lease", figures.workers)
    depth = GaugeMetricFamily("nightshift_queued_turns", "Turns that wait, by class", labels=["class"])
    oldest = GaugeMetricFamily("nightshift_oldest_waiting_seconds", "Age of the oldest waiting turn", labels=["class"])
    found = {row["class"]: row for row in figures.queued}
    for turn_class in TurnClass:
        row = found.get(turn_class)
        depth.add_metric([turn_class], row["n"] if row else 0)
        oldest.add_metric([turn_class], row["oldest_s"] if row else 0.0)
    yield depth
    yield oldest
    yield from _of_waits(figures)
    turns = GaugeMetricFamily("nightshift_turns", "Turns by status", labels=["status"])
    by_status = {row["status"]: row["n"] for row in figures.turns}
    for status in TurnStatus:
        turns.add_metric([status], by_status.get(status, 0))
    yield turns
    unknown = sum(row["n"] for row in figures.unknown)
    yield _gauge("unknown_effects", "Tool runs of which nobody knows whether they happened", unknown)
    yield from _of_calls(figures)
    yield from _of_schedulers(figures)


def _of_waits(figures: Figures) -> Iterable[Metric]:
    """What people feel: how long turns waited for their first claim; and what an admin has stopped."""
    waited = GaugeMetricFamily(
        "nightshift_waited_seconds",
        "Wait for the first claim, of turns that run or ended in the last five minutes",
        labels=["class", "quantile"],
    )
    counted = GaugeMetricFamily("nightshift_waited_turns", "How many turns that is", labels=["class"])
    found = {row["class"]: row for row in figures.waited}
    for turn_class in TurnClass:
        row = found.get(turn_class)
        counted.add_metric([turn_class], row["n"] if row else 0)
        for quantile, name in (("0.5", "p50"), ("0.95", "p95"), ("1", "longest")):
            if row:
                waited.add_metric([turn_class, quantile], row[name])
    yield waited
    yield counted
    stops = GaugeMetricFamily("nightshift_stops", "Stops that stand", labels=["scope"])
    by_scope = {row["scope"]: row["n"] for row in figures.stops}
    for scope in ("fleet", "person", "job", "profile", "tool"):
        stops.add_metric([scope], by_scope.get(scope, 0))
    yield stops


def _of_schedulers(figures: Figures) -> Iterable[Metric]:
    """What the schedulers have counted: the three that somebody should look at by name, and all by the log's words."""
    found: dict[str, int] = {row["name"]: row["n"] for row in figures.counted}
    locked = sum(n for name, n in found.items() if name.endswith(".locked"))
    named = (
        (
            "wake_missed",
            "Turns that slept for nothing until the sweep found them: must stay 0",
            found.get("wake_missed", 0),
        ),
        ("takeovers", "Turns taken away from a dead holder", found.get("turn.taken_over", 0)),
        ("locked_rows_skipped", "Rows that the sweep passed over because somebody held them", locked),
    )
    for name, help_, value in named:
        yield CounterMetricFamily(f"nightshift_{name}", help_, value=value)
    events = CounterMetricFamily("nightshift_scheduler_events", "Counted by the schedulers", labels=["event"])
    for name, n in sorted(found.items()):
        events.add_metric([name], n)
    yield events


def _of_calls(figures: Figures) -> Iterable[Metric]:
    calls = GaugeMetricFamily("nightshift_calls", "Provider calls", labels=["status", "purpose"])
    found = {(row["status"], row["purpose"]): row["n"] for row in figures.calls}
    for status in CallStatus:
        for purpose in Purpose:
            calls.add_metric([status, purpose], found.get((status, purpose), 0))
    yield calls
    tokens = GaugeMetricFamily("nightshift_tokens", "Billed tokens", labels=["bucket"])
    for bucket in ("input", "output", "cache_read", "cache_write"):
        tokens.add_metric([bucket], sum(row[bucket] for row in figures.calls))
    yield tokens
    yield _ratio(figures)
    yield _gauge(
        "cost_known_usd", "Dollars of calls whose cost is known", sum(row["known_usd"] for row in figures.calls)
    )
    yield _gauge("cost_unknown_calls", "Calls whose cost is unknown", sum(row["unknown"] for row in figures.calls))


def _ratio(figures: Figures) -> Metric:
    """Of the conversations' own calls that told a usage. 1 is exact; above it, too much was expected."""
    ratio = GaugeMetricFamily(
        "nightshift_estimate_ratio",
        "Prompt tokens expected for each one billed: by the bare estimate, and anchored on the bill before",
        labels=["kind"],
    )
    main = [row for row in figures.calls if row["purpose"] == Purpose.MAIN]
    billed = sum(row["billed"] for row in main)
    for kind, column in (("raw", "estimated"), ("corrected", "projected")):
        if billed:
            ratio.add_metric([kind], sum(row[column] for row in main) / billed)
    return ratio


def _of_process(services: Services) -> Iterable[Metric]:
    yield _gauge("viewers", "Open event streams of this process", services.hub.viewers)
    yield _gauge("seats_taken", "Handlers in the thread pool", services.seats.taken)
    yield CounterMetricFamily("nightshift_doorbell_rung", "Rings the broker took", value=services.ringer.bell.rung)
    yield CounterMetricFamily("nightshift_doorbell_missed", "Rings that were lost", value=services.ringer.missed)
    again = CounterMetricFamily("nightshift_store_retries", "Transactions tried again", labels=["error"])
    for name, count in retries.items():
        again.add_metric([name], count)
    yield again

"""OpenTelemetry as a subscriber: the same figures, sent to a collector over OTLP/HTTP. Needs the extra `telemetry`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.errors import SettingsError
from shared.telemetry import figures
from shared.telemetry.events import Event
from shared.telemetry.figures import Kind

_EVERY_MS = 10_000
_TIMEOUT_S = 5


class OpenTelemetry:
    """Sends to `endpoint`, the base address of a collector (`http://host:4318`), every ten seconds and at the end."""

    name = "opentelemetry"

    def __init__(self, endpoint: str, instance: str) -> None:
        """Raises SettingsError where the packages of the extra are not installed."""
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 - extra
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - extra
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - extra
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - extra
        except ImportError as error:
            raise SettingsError(
                "NIGHTSHIFT_OTLP_ENDPOINT: OpenTelemetry is not installed here: install nightshift[telemetry]"
            ) from error
        exporter = OTLPMetricExporter(endpoint=f"{endpoint.rstrip('/')}/v1/metrics", timeout=_TIMEOUT_S)
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=_EVERY_MS)
        # Named here and nowhere else: what the environment says of a resource could be anything.
        resource = Resource({"service.name": "nightshift-worker", "service.instance.id": instance})
        self._provider: Any = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        meter: Any = self._provider.get_meter("nightshift")
        self._counters = {
            f: meter.create_counter(f.name, description=f.help) for f in figures.ALL if f.kind is Kind.COUNT
        }
        self._spreads = {
            f: meter.create_histogram(f.name, unit="s", description=f.help)
            for f in figures.ALL
            if f.kind is Kind.SPREAD
        }

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            for reading in figures.of(event):
                labels = dict(zip(reading.figure.labels, map(str, reading.labels), strict=True))
                if reading.figure.kind is Kind.COUNT:
                    self._counters[reading.figure].add(reading.value, labels)
                else:
                    self._spreads[reading.figure].record(reading.value, labels)

    def close(self) -> None:
        """Sends what is left; a collector that does not answer is given up after its time-out."""
        self._provider.shutdown(timeout_millis=_TIMEOUT_S * 1000)

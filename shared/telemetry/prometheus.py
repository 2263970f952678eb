"""Prometheus as a subscriber: the figures of one worker, at an address of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server

from shared.errors import SettingsError
from shared.telemetry import figures
from shared.telemetry.events import Event
from shared.telemetry.figures import Kind

_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)
_log = structlog.stdlib.get_logger(__name__)


class Prometheus:
    """`registry` holds what is served."""

    name = "prometheus"

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._counters = {
            figure: Counter(figure.name, figure.help, figure.labels, registry=self.registry)
            for figure in figures.ALL
            if figure.kind is Kind.COUNT
        }
        self._spreads = {
            figure: Histogram(figure.name, figure.help, figure.labels, registry=self.registry, buckets=_SECONDS)
            for figure in figures.ALL
            if figure.kind is Kind.SPREAD
        }
        self._server = None

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            for reading in figures.of(event):
                if reading.figure.kind is Kind.COUNT:
                    self._counters[reading.figure].labels(*reading.labels).inc(reading.value)
                else:
                    self._spreads[reading.figure].labels(*reading.labels).observe(reading.value)

    def serve(self, listen: str) -> int | None:
        """`host:port`; port 0 is any. The port, or None where it is taken: a second worker of a host works on, and its
        figures are then nowhere but with the other subscribers. Raises SettingsError for what is no address."""
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise SettingsError(f"NIGHTSHIFT_METRICS_LISTEN: '{listen}' is not host:port, such as 127.0.0.1:9464")
        try:
            self._server, _ = start_http_server(int(port), addr=host.strip("[]"), registry=self.registry)
        except OSError as error:
            _log.warning("telemetry.not_served", listen=listen, error=type(error).__name__)
            return None
        return int(self._server.server_address[1])

    def close(self) -> None:
        if self._server is not None:
            with suppress(OSError):
                self._server.shutdown()
                self._server.server_close()
            self._server = None

"""What a turn needs of its process: the store, the provider, the stream, the life; made once, shared by all turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.doorbell import Doorbell
from shared.life import Life
from shared.settings import Settings
from shared.store.pool import Database
from shared.telemetry.ring import Telemetry
from workers.pause import Pauses
from workers.providers.routes import Routes
from workers.publish import Publisher
from workers.tracing import Tracer


@dataclass(frozen=True, slots=True)
class Ports:
    settings: Settings
    database: Database
    routes: Routes
    publisher: Publisher
    life: Life
    doorbell: Doorbell
    pauses: Pauses
    telemetry: Telemetry = field(default_factory=Telemetry)
    content: Tracer | None = None
    """Where content is traced; nowhere is the rule."""

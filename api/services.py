"""What one API process holds, made once by `create_app` and reached by every handler."""

from __future__ import annotations

from dataclasses import dataclass

from api.asking import Asking
from api.auth import Auth
from api.database import Database
from api.events.hub import Hub
from api.hints import Hints
from api.ringer import Ringer
from api.seats import Seats
from api.vitals import Vitals
from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    database: Database
    asking: Asking
    auth: Auth
    hub: Hub
    ringer: Ringer
    hints: Hints
    seats: Seats
    vitals: Vitals

"""The application: its services, made and ended with it, and its routes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api import openapi, problems, reference
from api.asking import Asking
from api.auth import Auth
from api.database import Database
from api.events.hub import Hub
from api.hints import Hints
from api.ringer import Ringer
from api.routes import (
    approvals,
    asked,
    budgets,
    caps,
    children,
    clock,
    context,
    events,
    gate,
    health,
    jobs,
    ledger,
    memory,
    people,
    search,
    sessions,
    stops,
    transcripts,
    turns,
)
from api.seats import Seats
from api.services import Services
from api.vitals import Vitals
from shared.doorbell import Doorbell, celery_app
from shared.settings import Settings

VERSION = "1"
ROUTERS = (
    sessions.router, turns.router, events.router, transcripts.router, search.router, asked.router, context.router,
    children.router, approvals.router, gate.router, caps.router, budgets.router, jobs.router, ledger.router,
    memory.router, people.router, stops.router, health.router,
)  # fmt: skip


def create_app(settings: Settings) -> FastAPI:
    """An application over the servers that `settings` names. It connects when it starts, not here."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        services = _services(settings)
        app.state.services = services
        await services.asking.open()
        services.hub.open()
        try:
            yield
        finally:
            await services.hub.close()
            await services.vitals.close()
            await services.asking.close()
            services.ringer.close()
            services.hints.close()
            services.database.close()

    app = FastAPI(title="Nightshift", version=VERSION, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.serving = False
    problems.install(app)
    openapi.install(app)
    for router in ROUTERS:
        app.include_router(router)
    if settings.test_clock:
        app.include_router(clock.router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(reference.page(app.openapi()))

    @app.get("/", include_in_schema=False)
    async def front() -> Response:
        return RedirectResponse("/docs")

    return app


def _services(settings: Settings) -> Services:
    asking = Asking(settings.database_url)
    auth = Auth(asking)
    return Services(
        settings=settings,
        database=Database(settings.database_url),
        asking=asking,
        auth=auth,
        hub=Hub(asking, settings.redis_url, auth.forget),
        ringer=Ringer(Doorbell(celery_app(settings.redis_url, connections=4))),
        hints=Hints(settings.redis_url),
        seats=Seats(),
        vitals=Vitals(asking, settings.redis_url),
    )

"""Alive, ready, figures. The invariant: none of these takes a thread, and `/healthz` waits for nothing."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from api import answers, metrics
from api.injected import Serving

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> Response:
    """This process answers."""
    return answers.ok({"status": "ok"})


@router.get("/readyz")
async def readyz(serving: Serving) -> Response:
    """This process can serve: database, broker, and a worker seen. 503 says which is missing."""
    ready = await serving.vitals.ready()
    found = {"ready": ready.all, "database": ready.database, "broker": ready.broker, "workers": ready.workers}
    return answers.ok(found, 200 if ready.all else 503)


@router.get("/metrics", response_class=Response)
async def figures(serving: Serving) -> Response:
    """Prometheus."""
    found = await serving.vitals.figures()
    return Response(metrics.text(serving, found), media_type=CONTENT_TYPE_LATEST)

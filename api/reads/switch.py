"""What it would cost to let another model answer in a session, against what it costs to stay. Nothing is changed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from psycopg.rows import dict_row

from api.answers import dollars
from api.reads import context
from api.wire.money import Answering, Switch
from shared import rates
from shared.errors import SettingsError
from shared.providers import resolve
from shared.providers.chains import Link
from shared.request import estimate
from shared.settings import Settings
from shared.store.pool import Connection

# `spoke` is whom the conversation was last with: only there can any of it be cached.
STANDS: LiteralString = """
select provider, model, spoke, prefix, prefix_warm_until, prefix_warm_until > clock_now() as warm, clock_now() as now
from sessions where id = %(session)s
"""


def find(connection: Connection, session: UUID, settings: Settings, to: Link) -> Switch:
    """Of a session that the caller has just seen, as of one moment. Inside a transaction."""
    row = connection.cursor(row_factory=dict_row).execute(STANDS, {"session": session}).fetchone()
    assert row is not None, "the caller has just seen it"
    stays = Link(row["provider"], row["model"])
    tokens = 0
    if row["prefix"] is not None and row["spoke"] is not None:
        tokens = context.find(connection, session, settings).tokens

    def told(link: Link, counted: int) -> Answering:
        cached = bool(row["warm"]) and row["spoke"] == str(link)
        usd = _price(settings, link, counted, row["now"], cached=cached)
        return Answering(provider=link.provider, model=link.model, anew=not cached, cost_usd=dollars(usd))

    counted = round(tokens * estimate.factor(to.model) / estimate.factor(stays.model))
    return Switch(
        session_id=session, changes=to != stays, tokens=counted, stays=told(stays, tokens), to=told(to, counted),
        warm_until=row["prefix_warm_until"],
    )  # fmt: skip


def _price(settings: Settings, link: Link, tokens: int, at: datetime, *, cached: bool) -> Decimal | None:
    if cached:
        return rates.kept(link.model, tokens, at, provider=link.provider, own=settings.prices)
    try:
        marks = resolve.of_provider(settings, link.provider).of_model(link.model).route.marks
    except SettingsError:  # a session of a provider that is configured no more: what it costs there is not known
        return None
    return rates.anew(link.model, tokens, at, provider=link.provider, marks=marks, own=settings.prices)

"""Owns what is known of a model's window where the settings and the catalogue know nothing: what its provider said."""

from __future__ import annotations

from uuid import UUID

from shared import models, windows
from shared.models import Limits
from shared.providers import resolve
from shared.settings import Settings
from shared.store.pool import Connection, Database
from shared.store.statements import one
from shared.store.statements.windows import LEARN_WINDOW, WINDOW_LEARNED


def limits(connection: Connection, settings: Settings, provider: str, model: str) -> Limits:
    """As configured, as the catalogue has it, as two errors of the provider have said, as is usual there. Asks the
    database for a model only that neither of the first two knows."""
    told = resolve.limits(settings, provider, model)
    if told.known:
        return told
    row = one(connection, WINDOW_LEARNED, {"provider": provider, "model": model})
    return told if row is None or row["learned"] is None else _learned(row["learned"], row["source"])


def of(database: Database, settings: Settings, provider: str, model: str) -> Limits:
    """The same, without a connection where the settings or the catalogue know it."""
    told = resolve.limits(settings, provider, model)
    return told if told.known else database.read(lambda connection: limits(connection, settings, provider, model))


def learn(
    connection: Connection, settings: Settings, provider: str, model: str, call: UUID, words: str
) -> Limits | None:
    """A call was too long, and the provider said so in these words. The limits from now on, None where nothing new is
    known. One statement, which may be sent twice."""
    window = windows.told(words)
    if window is None or resolve.limits(settings, provider, model).known:
        return None
    values = {"provider": provider, "model": model, "seen": window, "source": windows.source(words), "call": call}
    row = one(connection, LEARN_WINDOW, values)
    return None if row is None or row["learned"] is None else _learned(row["learned"], row["source"])


def _learned(window: int, source: str) -> Limits:
    made = models.limits("", told=window)
    return Limits(made.window, made.max_output, known=True, source=f"learned: {source}")

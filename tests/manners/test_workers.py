"""Among how many workers a limit is shared while Redis is away: those that live, by the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.life import Life
from shared.settings import Settings
from shared.store.pool import Database
from workers.manners import workers
from workers.manners.workers import Workers


def test_workers_that_live_are_counted_and_what_was_true_last_counts_while_the_database_is_away(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "EVERY_S", 0.0)
    settings = Settings(home=tmp_path, database_url=database_url)
    database = Database(database_url, size=2, wait_s=10, patience_s=30)
    counted = Workers(database)
    lives = [Life(settings, kind, 1, "interactive") for kind in ("worker", "worker", "worker", "scheduler")]
    try:
        assert counted.count() == 1  # it is one itself
        assert all(life.start(30) for life in lives)
        assert counted.count() == 3
        lives[0].stop("test")
        assert counted.count() == 2
        monkeypatch.setattr(workers, "EVERY_S", 1_000.0)
        lives[1].stop("test")
        assert counted.count() == 2  # asked seldom
        monkeypatch.setattr(workers, "EVERY_S", 0.0)
        database.close()
        assert counted.count() == 2
    finally:
        for life in lives:
            life.stop("test over")
        database.close()

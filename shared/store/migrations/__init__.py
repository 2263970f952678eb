"""Alembic's revisions; their statements are plain SQL files."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import psycopg
from alembic import op

_SQL = Path(__file__).parent / "sql"


def run_file(name: str) -> None:
    """Run one file of `sql/` as it stands, over the driver's own connection (SQLAlchemy would read `%` as a mark)."""
    driver = cast("psycopg.Connection", op.get_bind().connection.driver_connection)
    driver.execute((_SQL / name).read_bytes())

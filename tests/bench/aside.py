"""A database of a benchmark's own, beside the stack's on the same server: nobody else claims or sweeps in it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import psycopg

from shared.store import migrate
from tests.bench.house import House
from tests.ground import drop_database


@contextlib.contextmanager
def database(house: House, name: str) -> Generator[str]:
    """Migrated; gone afterwards."""
    own = house.rig.facts["database_direct_url"]
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    try:
        address = own.replace("/nightshift?", f"/{name}?")
        migrate.upgrade(address)
        with psycopg.connect(address, autocommit=True) as connection:
            migrate.set_role(connection)
        yield address
    finally:
        drop_database(own, name)

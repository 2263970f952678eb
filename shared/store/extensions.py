"""The one extension that the schema asks for, and what to do where a server or a role cannot give it."""

from __future__ import annotations

import psycopg

NAME = "pg_trgm"
"""Trusted: whoever may create in the database may install it, once the server has its files."""
_STATE = """
select e.extversion, exists (select 1 from pg_available_extensions a where a.name = %(name)s),
  has_database_privilege(current_database(), 'create')
from (select 1) one left join pg_extension e on e.extname = %(name)s
"""


def version(connection: psycopg.Connection) -> str | None:
    """The installed version, or None."""
    row = connection.execute(_STATE, {"name": NAME}).fetchone()
    return None if row is None else row[0]


def hindrance(connection: psycopg.Connection) -> str | None:
    """Why the extension is not there and cannot be had, with the mend behind a colon; None where it is or can."""
    row = connection.execute(_STATE, {"name": NAME}).fetchone()
    installed, available, may = row or (None, False, False)
    if installed is not None:
        return None
    if not available:
        return (
            f"the server does not have the extension {NAME}: install the contrib modules of Postgres (Debian has them"
            " in postgresql-15, others in a package postgresql-contrib), then run `nightshift migrate`"
        )
    if not may:
        return (
            f"this role may not install the extension {NAME}: as the database's owner run `create extension {NAME}` in"
            " it, or grant the role create on the database"
        )
    return None

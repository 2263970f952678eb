"""Whether a database fits this code, and what to say of one that cannot be used. Imports nothing of what migrates it:
every process asks this at its start, and Alembic with SQLAlchemy takes it 0.2 s.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from shared.errors import FAILED, WRONG_SETTINGS, SchemaMismatch

_VERSIONS = Path(__file__).parent / "migrations" / "versions"
_WRONG_PASSWORD = "check user and password in NIGHTSHIFT_DATABASE_URL"  # noqa: S105 - a sentence, no secret


def head_revision() -> str:
    """The revision that this code was written for: revisions are numbers, and their files are named by them."""
    numbers = [path.name.partition("_")[0] for path in _VERSIONS.glob("[0-9]*_*.py")]
    if not numbers:
        raise SchemaMismatch("this copy of Nightshift holds no migrations; install it again")
    return max(numbers)


def current_revision(connection: psycopg.Connection) -> str | None:
    """The database's revision, or None where it was never migrated."""
    found = connection.execute("select to_regclass('alembic_version') is not null").fetchone()
    if not found or not found[0]:
        return None
    row = connection.execute("select version_num from alembic_version").fetchone()
    return str(row[0]) if row else None


def check(connection: psycopg.Connection) -> None:
    """Refuse to serve a database that is not at this code's revision. Raises SchemaMismatch with the mend."""
    found, head = current_revision(connection), head_revision()
    if found == head:
        return
    if found is None:
        raise SchemaMismatch("the database holds no Nightshift schema: run `nightshift migrate`")
    if found > head:
        raise SchemaMismatch(newer_text(f"revision {found}"))
    raise SchemaMismatch(f"the database is at revision {found}, this code needs {head}: run `nightshift migrate`")


def newer_text(detail: str) -> str:
    return f"the database is newer than this code ({detail}): upgrade Nightshift, or restore an older backup"


def unreachable(error: psycopg.OperationalError) -> tuple[str, int]:
    """What a process without its database says, and the code it ends with: no restart mends a password."""
    sentence = unreachable_text(error)
    return sentence, WRONG_SETTINGS if _WRONG_PASSWORD in sentence else FAILED


def unreachable_text(error: Exception) -> str:
    """A sentence for a connection that failed, with the server's words and no password."""
    # Lines that begin with a tab are libpq's hints ("Is the server running…?"): the reason stands before them.
    words = [line.removeprefix("- ") for line in str(error).splitlines() if line.strip() and not line.startswith("\t")]
    first = words[-1].strip() if words else type(error).__name__
    mend = "check NIGHTSHIFT_DATABASE_URL and that the server runs"
    if "password" in first or "authentication" in first:
        mend = _WRONG_PASSWORD
    return f"the database cannot be used ({first}): {mend}"

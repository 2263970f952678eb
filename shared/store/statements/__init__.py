"""Every race-sensitive statement, named. A test prepares each one and reads its plan: it must use the index it names.

Functions here take a connection and never commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import Cursor
from psycopg.rows import DictRow, dict_row

from shared.store.pool import Connection


@dataclass(frozen=True, slots=True)
class Statement:
    """`uses`: the indexes whose use the plan must show on a large table; `a|b` where either will do."""

    name: str
    text: LiteralString
    uses: tuple[str, ...] = ()


REGISTRY: dict[str, Statement] = {}


def named(name: str, text: LiteralString, *uses: str) -> Statement:
    """Register a statement under its name; two of one name are a mistake in the code."""
    if name in REGISTRY:
        raise ValueError(f"two statements are named {name}")
    REGISTRY[name] = Statement(name, text, uses)
    return REGISTRY[name]


def run(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> Cursor[DictRow]:
    """Execute one named statement; rows come as dicts."""
    cursor = connection.cursor(row_factory=dict_row)
    return cursor.execute(statement.text, params)


def one(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> DictRow | None:
    """The first row, or None."""
    return run(connection, statement, params).fetchone()


def every(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> list[DictRow]:
    """All rows."""
    return run(connection, statement, params).fetchall()

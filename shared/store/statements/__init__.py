"""Every race-sensitive statement, named. A test prepares each one and reads its plan: it must use the index it names.

Functions here take a connection and never commit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import Cursor, RawCursor
from psycopg.rows import DictRow, dict_row

from shared.store.pool import Connection


@dataclass(frozen=True, slots=True)
class Statement:
    """`uses`: the indexes whose use the plan must show on a large table; `a|b` where either will do.

    `numbered` is what goes out: the text with `$n` for each of `parameters`. psycopg would find them anew each time in
    a text above 4,096 bytes or 50 parameters: 0.4 ms of CPU a step.
    """

    name: str
    text: LiteralString
    uses: tuple[str, ...]
    numbered: bytes
    parameters: tuple[str, ...]


REGISTRY: dict[str, Statement] = {}


def named(name: str, text: LiteralString, *uses: str) -> Statement:
    """Register a statement under its name; two of one name are a mistake in the code."""
    if name in REGISTRY:
        raise ValueError(f"two statements are named {name}")
    REGISTRY[name] = Statement(name, text, uses, *numbered(text))
    return REGISTRY[name]


def numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """The text with `$n` where it has `%(name)s`, and the names in the order of their numbers."""
    places: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${places.setdefault(match[1], len(places) + 1)}" if match[1] else "%"

    return re.sub(r"%\((\w+)\)s|%%", number, text).encode(), tuple(places)


def run(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> Cursor[DictRow]:
    """Execute one named statement; rows come as dicts."""
    cursor = RawCursor(connection, row_factory=dict_row)
    return cursor.execute(statement.numbered, [params[name] for name in statement.parameters])


def one(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> DictRow | None:
    """The first row, or None."""
    return run(connection, statement, params).fetchone()


def every(connection: Connection, statement: Statement, params: Mapping[str, Any]) -> list[DictRow]:
    """All rows."""
    return run(connection, statement, params).fetchall()

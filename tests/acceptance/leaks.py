"""Looks for bytes in everything that a stack keeps: files, rows (compressed there), keys of the broker."""

from __future__ import annotations

import base64
import json
import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import sql

from tests.acceptance.house import Rig

# Stand in an assembled request and nowhere else: the seam of two messages, the seam of parameters and tools.
SEAMS = (']},{"role":"assistant","content":[', '"stream":true,"tools":[{"name":')


def disguises(text: str) -> list[bytes]:
    """The bytes as they are, inside one and two JSON strings, and in base64 at each of its three alignments."""
    once = json.dumps(text)[1:-1]
    return [text.encode(), once.encode(), json.dumps(once)[1:-1].encode(), *(_coded(text, by) for by in range(3))]


def _coded(text: str, by: int) -> bytes:
    """Without the groups at either end, which hold bytes of what stands before and behind."""
    groups = base64.b64encode(b"." * by + text.encode()).rstrip(b"=")
    return groups[4 if by else 0 : len(groups) // 4 * 4 - 4]


def in_files(root: Path, wanted: Iterable[bytes]) -> list[str]:
    """The files below a folder that hold any of them."""
    needles = list(wanted)
    found: list[str] = []
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.is_symlink() or not path.stat().st_size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if any(data.find(needle) >= 0 for needle in needles):
                found.append(str(path.relative_to(root)))
    return found


COLUMNS = """
select c.table_name, c.column_name, c.data_type from information_schema.columns c
join information_schema.tables t using (table_schema, table_name)
where c.table_schema = 'public' and t.table_type = 'BASE TABLE'
  and c.data_type in ('text', 'character varying', 'json', 'jsonb', 'bytea', 'ARRAY', 'tsvector')
order by 1, 2
"""


def in_rows(stack: Rig, wanted: Iterable[bytes]) -> list[str]:
    """The columns of the database that hold any of them."""
    needles = list(wanted)
    found: list[str] = []
    with psycopg.connect(stack.facts["database_url"], autocommit=True) as connection:
        for table, column, kind in connection.execute(COLUMNS).fetchall():
            name = sql.Identifier(column)
            value = name if kind == "bytea" else sql.SQL("convert_to({}::text, 'UTF8')").format(name)
            query = sql.SQL("select exists (select from {} where {})").format(
                sql.Identifier(table),
                sql.SQL(" or ").join(sql.SQL("position(%s::bytea in {}) > 0").format(value) for _ in needles),
            )
            row = connection.execute(query, needles).fetchone()
            if row is not None and row[0]:
                found.append(f"{table}.{column}")
    return found


def in_broker(stack: Rig, wanted: Iterable[bytes]) -> list[str]:
    """The keys of Valkey whose values hold any of them."""
    needles = list(wanted)
    client: Any = stack.redis()
    found: list[str] = []
    for key in cast("list[bytes]", list(client.scan_iter(count=1000))):
        value = repr(_value(client, key)).encode()
        # `repr` shows bytes beyond ASCII by their escapes; the needles hold none.
        if any(needle in value or repr(needle)[2:-1].encode() in value for needle in needles):
            found.append(key.decode("utf-8", "replace"))
    return found


def _value(client: Any, key: bytes) -> Any:
    match client.type(key):
        case b"string":
            return client.get(key)
        case b"list":
            return client.lrange(key, 0, -1)
        case b"hash":
            return client.hgetall(key)
        case b"set":
            return client.smembers(key)
        case b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        case b"stream":
            return client.xrange(key)
        case b"none":
            return None  # it went away between the two questions
        case other:
            raise AssertionError(f"{key!r} is of a kind that is not looked into: {other!r}")

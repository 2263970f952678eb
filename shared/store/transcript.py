"""A session's transcript as rows, and the exact request of any past call rebuilt from them.

The invariant: what a call sent = project(prefix, messages up to its last, edits up to its last) + its params, marks and
tail; nothing in memory, no clock and no builder has a part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from psycopg.rows import class_row, dict_row

from shared.errors import Refused
from shared.request import blocks, projection, repair
from shared.request import edits as edit_rules
from shared.request.assembled import Request
from shared.request.marked import Mark, MarkedRequest, Place, marked_at, read_dialect, read_marks, write_marks
from shared.request.projection import EditRow, MessageRow, Prefix
from shared.store.pool import Connection
from shared.values import Purpose

PREFIX = """
select digest, system_text, stable_length, context_length, tools_text from prefixes where digest = %s
"""
MESSAGES = """
select id, turn::text as turn, step, ordinal, author, role, content, sent, blocks, stable_prefix_len from messages
where session = %s and id > %s and id <= %s order by id
"""
STANDING = """
select m.* from unnest(%(first)s::bigint[], %(last)s::bigint[]) as live(first, last) cross join lateral (
  select id, turn::text as turn, step, ordinal, author, role, content, sent, blocks, stable_prefix_len from messages
  where (session, id) >= (%(session)s, live.first) and (session, id) <= (%(session)s, live.last)
  order by session, id offset 0
) m order by m.id
"""
"""Pairs are compared, range by range, so that the index of pairs is walked: for ids alone the planner takes the key,
and reads what all other sessions wrote meanwhile."""
EDITS = """
select id, kind, first, last, block, text, prefix, kept from edits where session = %s and id <= %s order by id
"""
CALL = """
select id, session, purpose, last_message, last_edit, prefix, params, marks, tail, bare, block_count, digest
from calls where id = %s
"""
NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class Replayed:
    """A past call's request: `body` the bytes, `agrees` whether their digest is the one that was stored."""

    body: bytes
    block_count: int
    digest: str
    agrees: bool


def load_prefix(connection: Connection, digest: str) -> Prefix:
    """The stored prefix. Raises Refused `not_found`."""
    found = connection.cursor(row_factory=class_row(Prefix)).execute(PREFIX, (digest,)).fetchone()
    if found is None:
        raise Refused("there is no such prefix", code="not_found", status=404)
    return found


def load_messages(connection: Connection, session: UUID, *, after: int = 0, upto: int = NEWEST) -> list[MessageRow]:
    """Messages with `after < id <= upto`, in order."""
    rows = connection.cursor(row_factory=class_row(MessageRow))
    return rows.execute(MESSAGES, (session, after, upto)).fetchall()


def load_standing(
    connection: Connection, session: UUID, edits: Sequence[EditRow], *, upto: int = NEWEST
) -> list[MessageRow]:
    """The messages that the model sees as they are after these edits, with `id <= upto`, in order: what a summary
    stands for, or a rewind took back, is never read, so an old session costs what is left of it."""
    ranges = edit_rules.apply(edits).live(upto)
    rows = connection.cursor(row_factory=class_row(MessageRow))
    bounds = {"first": [first for first, _ in ranges], "last": [last for _, last in ranges], "session": session}
    return rows.execute(STANDING, bounds).fetchall()


def load_edits(connection: Connection, session: UUID, *, upto: int = NEWEST) -> list[EditRow]:
    """Edits with `id <= upto`, in order."""
    return connection.cursor(row_factory=class_row(EditRow)).execute(EDITS, (session, upto)).fetchall()


def project(
    connection: Connection,
    session: UUID,
    prefix: str,
    *,
    last_message: int = NEWEST,
    last_edit: int = NEWEST,
    final: bool = False,
) -> Request:
    """What the model sees of a session, as far as the rows named; `final` leaves out tools and signed reasoning."""
    edits = load_edits(connection, session, upto=last_edit)
    return projection.project(
        load_prefix(connection, prefix),
        load_standing(connection, session, edits, upto=last_message),
        edits,
        without_reasoning=final,
        without_tools=final,
    )


def floor(connection: Connection, prefix: str) -> Request:
    """What a `probe` stands on: the system prompt alone, without tools and without anything that was said."""
    return projection.project(load_prefix(connection, prefix), (), (), without_reasoning=True, without_tools=True)


def encode_marks(marked: MarkedRequest, provisional: int) -> str:
    """Marks as stored: a mark on a row that has no id yet (id above `provisional`) is stored by its place from the
    end."""
    pieces = marked.request.pieces
    wanted = {one.at for one in marked.marks if one.place is Place.MESSAGE and one.at > provisional}
    places: dict[int, int] = {}
    at = 0
    while len(places) < len(wanted):  # from the end, where they stand
        at -= 1
        if pieces[at].id in wanted:
            places[pieces[at].id] = at
    stored = [
        replace(one, at=places[one.at]) if one.place is Place.MESSAGE and one.at > provisional else one
        for one in marked.marks
    ]
    return write_marks(stored, marked.dialect)


def decode_marks(request: Request, marks: str) -> MarkedRequest:
    """The request marked as `encode_marks` stored it."""
    placed = [
        Mark(one.place, request.pieces[one.at].id, one.ttl) if one.place is Place.MESSAGE and one.at < 0 else one
        for one in read_marks(marks)
    ]
    return marked_at(request, placed, read_dialect(marks))


def replay(connection: Connection, call: UUID) -> Replayed:
    """The exact request of a past call, rebuilt from rows. Raises Refused `not_found`."""
    row = connection.cursor(row_factory=dict_row).execute(CALL, (call,)).fetchone()
    if row is None:
        raise Refused("there is no such call", code="not_found", status=404)
    if row["purpose"] == Purpose.PROBE:
        request = floor(connection, row["prefix"])
    else:
        request = project(
            connection,
            row["session"],
            row["prefix"],
            last_message=row["last_message"],
            last_edit=row["last_edit"],
            final=row["purpose"] == Purpose.FINAL or row["bare"],
        )
    if row["tail"] is not None:
        request = projection.with_tail(request, blocks.split(row["tail"]))
    request, _, _ = repair.mend(request)
    marked = decode_marks(request, row["marks"])
    agrees = (marked.block_count, marked.digest) == (row["block_count"], row["digest"])
    return Replayed(marked.body(row["params"]), marked.block_count, marked.digest, agrees)

"""What a transcript holds a preview of, whole: to who may see its session, and as text that no browser takes for
anything else."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import dict_row
from starlette.responses import Response

from api import problems
from shared.store.pool import Connection

WHOLE = "select body from artifacts where id = %(id)s and session = %(session)s"
# Not compressed (0003_spill.sql), so a page is read without the rest.
PAGE = (
    "select substr(body, %(from)s, %(most)s) as body, octet_length(body) as size from artifacts"
    " where id = %(id)s and session = %(session)s"
)
SIZE = "x-nightshift-size"
"""How many bytes the whole has, beside a page of it."""
MOST_PAGE = 4 << 20
_HEADERS = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'"}


def whole(connection: Connection, session: UUID, id_: UUID) -> Response:
    """Byte for byte. Raises Refused `not_found` where the session has no such artifact; that the caller may see the
    session is asked before."""
    row = connection.cursor(row_factory=dict_row).execute(WHOLE, {"id": id_, "session": session}).fetchone()
    if row is None:
        raise problems.not_found()
    return Response(bytes(row["body"]), media_type="text/plain; charset=utf-8", headers=_HEADERS)


def page(connection: Connection, session: UUID, id_: UUID, offset: int, limit: int) -> Response:
    """So many bytes from there on; none past its end. Raises as `whole`."""
    values = {"id": id_, "session": session, "from": offset + 1, "most": limit}
    row = connection.cursor(row_factory=dict_row).execute(PAGE, values).fetchone()
    if row is None:
        raise problems.not_found()
    headers = {**_HEADERS, SIZE: str(row["size"])}
    return Response(bytes(row["body"]), media_type="text/plain; charset=utf-8", headers=headers)

"""A session's transcript, page by page; a page is bounded in bytes too, since one message may be megabytes."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import DictRow, dict_row

from shared.request import canonical
from shared.store.pool import Connection

MOST_CHARACTERS = 4_000_000
# Ids ascend, so the running sum is that of the page; the first row is given whatever its size.
TRANSCRIPT = """
select m.id, m.turn, m.step, m.ordinal, coalesce(p.name, m.author) as author, m.role, m.content, m.cut, m.created_at,
  st.active, st.compacted, m.author = 'tool' and exists (
    select 1 from tool_runs r where r.turn = m.turn and r.step = m.step and r.ordinal = m.ordinal
      and r.status = 'unknown') as unknown, a.id as artifact, a.characters
from (
  select *, sum(length(content)) over (order by id) - length(content) as before, row_number() over (order by id) as nth
  from (select * from messages where session = %(session)s and id > %(after)s order by id limit %(limit)s) page
) m
join message_state st on st.id = m.id
left join principals p on p.id::text = m.author
left join artifacts a on m.author = 'tool' and a.turn = m.turn and a.step = m.step and a.ordinal = m.ordinal
where m.before < %(most)s or m.nth = 1
order by m.id
"""


def transcript(connection: Connection, session: UUID, after: int, limit: int) -> list[DictRow]:
    """Messages with an id above `after`, in order; fewer than `limit` where they are large."""
    values = {"session": session, "after": after, "limit": limit, "most": MOST_CHARACTERS}
    return connection.cursor(row_factory=dict_row).execute(TRANSCRIPT, values).fetchall()


def shown(row: DictRow) -> str:
    """One message as JSON text; its content is spliced in as it is stored."""
    state = "live" if row["active"] else "summarised" if row["compacted"] else "rewound"
    head = {
        "id": str(row["id"]), "turn_id": str(row["turn"]), "step": row["step"], "ordinal": row["ordinal"],
        "author": row["author"], "role": row["role"], "state": state, "cut": row["cut"],
        **({"unknown_effect": True} if row["unknown"] else {}),
        **({"preview_of": _whole(row)} if row["artifact"] else {}),
        "created_at": row["created_at"].isoformat(),
    }  # fmt: skip
    return f'{canonical.dump(head)[:-1]},"content":{row["content"]}}}'


def _whole(row: DictRow) -> dict[str, object]:
    """Where that is of which the message is a preview, to the model and here: `/v1/sessions/…/artifacts/…`."""
    return {"artifact": str(row["artifact"]), "characters": row["characters"]}

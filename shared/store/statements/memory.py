"""What is remembered: the head of each scope, its revisions, and what of a person's they put before others.

Lock order: a holder's session first, then the scope's head; a person's request locks the head alone. Behind a head
only a compaction writes, rows that are its own session's or new. Whoever has the head's lock reads it in a later
statement.
"""

from __future__ import annotations

from shared.store.statements import named

# A run's right to write, held for its transaction, and what its conversation is: whose it is, who reads it, and whether
# everyone whose words the turn carries may write for the team. Who is disabled or gone may not.
MEMORY_PLACE = named(
    "memory_place",
    """
with s as (
  update sessions set fence = fence where id = %(session)s and fence = %(fence)s
  returning id, owner, audience, kind
)
select s.owner, s.audience, s.kind, t.requested_by, (
  select bool_and(coalesce(p.role <> 'viewer' and p.disabled_at is null, false))
  from unnest(t.contributors || t.requested_by) as v(id) left join principals p on p.id = v.id
) as may_write
from s join turns t on t.id = %(turn)s
""",
    "sessions_pkey",
    "turns_pkey",
)
# The same of a run that only reads.
MEMORY_READER = named(
    "memory_reader",
    "select owner, audience, kind from sessions where id = %(session)s",
    "sessions_pkey",
)
MEMORY_OF_RUN = named(
    "memory_of_run",
    """
select scope, revision, action, entries from memory_revisions
where turn = %(turn)s and step = %(step)s and ordinal = %(ordinal)s
""",
    "memory_run_key",
)
MEMORY_BEGIN = named(
    "memory_begin",
    "insert into memories (scope, owner) values (%(scope)s, %(owner)s) on conflict (scope) do nothing",
)
MEMORY_LOCK = named(
    "memory_lock",
    "select revision, entries from memories where scope = %(scope)s for no key update",
    "memories_pkey",
)
MEMORY_HEAD = named(
    "memory_head",
    """
select m.revision, m.entries, m.updated_at, p.name as updated_by
from memories m
left join memory_revisions r on r.scope = m.scope and r.revision = m.revision
left join principals p on p.id = r.author
where m.scope = %(scope)s
""",
    "memories_pkey",
    "memory_revisions_pkey",
)
MEMORY_WRITE = named(
    "memory_write",
    """
with r as (
  insert into memory_revisions (scope, revision, action, taken, put, entries, author, session, turn, step, ordinal,
    fence)
  values (%(scope)s, %(seen)s + 1, %(action)s, %(taken)s, %(put)s, %(entries)s, %(author)s, %(session)s, %(turn)s,
    %(step)s, %(ordinal)s, %(fence)s)
  returning scope, revision, entries
)
update memories set revision = r.revision, entries = r.entries, updated_at = clock_now()
from r where memories.scope = r.scope and memories.revision = %(seen)s
returning memories.revision
""",
    "memories_pkey",
)
# A session's memory as it enters a prompt: the team's, and its owner's own where nobody but the owner reads it. A child
# knows what its task says and nothing else.
MEMORY_SNAPSHOT = named(
    "memory_snapshot",
    """
select m.scope, m.owner, m.revision, m.entries from sessions s join memories m on m.scope = 'team' or (
  s.audience = 'private' and m.scope in ('person:' || s.owner, 'profile:' || s.owner))
where s.id = %(session)s and s.kind <> 'child' and m.entries <> '[]'
""",
    "sessions_pkey",
    "memories_pkey",
)
# Newest first. A turn is named to those who may see its session.
MEMORY_HISTORY = named(
    "memory_history",
    """
select r.revision, r.action, r.taken, r.put, r.entries, r.created_at, p.name as author,
  case when s.owner = %(who)s or s.audience = 'team' or (s.audience = 'people' and exists (
    select 1 from session_people sp where sp.session = s.id and sp.principal = %(who)s)) then r.turn end as turn,
  r.session is not null as by_agent
from memory_revisions r join principals p on p.id = r.author left join sessions s on s.id = r.session
where r.scope = %(scope)s and r.revision < %(before)s order by r.revision desc limit %(limit)s
""",
    "memory_revisions_pkey",
)
# How much was put before a conversation that it has not read yet.
MEMORY_UNREAD = named(
    "memory_unread",
    "select count(*) as n from inbox where session = %(session)s and folded_into is null and kind = 'delivery'",
    "inbox_waiting|inbox_unread",
)
MEMORY_INCLUDED = named(
    "memory_included",
    """
insert into audit (principal, action, subject, detail)
values (%(principal)s, 'memory.included', %(session)s::text, %(detail)s)
returning id
""",
)

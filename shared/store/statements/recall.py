"""Search over every message, and the reading of handles. Readers only: nothing here locks or writes.

`readers` are all who may see the asking session; none stands for the whole team. What one of them may not see does not
exist. What was taken back is left out by the edits themselves, so that a rewind costs no index a row.
"""

from __future__ import annotations

from typing import LiteralString

from shared.store.statements import named

ALL_MAY_SEE: LiteralString = """(
  s.audience = 'team' or (cardinality(%(readers)s::uuid[]) > 0 and not exists (
    select 1 from unnest(%(readers)s::uuid[]) as r(who)
    where r.who <> s.owner and not (s.audience = 'people' and exists (
      select 1 from session_people sp where sp.session = s.id and sp.principal = r.who)))))"""
"""Of a row `s` of sessions. One reader: what api/visible.py says of that one (a test compares them)."""

_TAKEN_BACK: LiteralString = """exists (
    select 1 from edits e where e.session = f.session and e.kind = 'rewind' and f.message between e.first and e.last
      and not exists (select 1 from edits b where b.session = e.session and b.kind = 'restore' and b.first = e.id))"""

# Who reads along with a session, and where its running turn begins: what that turn asks for is no find.
READERS = named(
    "readers",
    """
select s.audience = 'team' as team, s.kind,
  array[s.owner] || array(
    select p.principal from session_people p where p.session = s.id and s.audience = 'people') as readers,
  (select min(m.id) from messages m where m.turn = %(turn)s) as since
from sessions s where s.id = %(session)s
""",
    "sessions_pkey",
    "messages_step_key",
)

# Found is everybody's, and fenced off by `materialized`, so that no plan walks the newest messages in the hope of a
# match. Then what may be seen, what stands, the newest 100 sessions with 10 messages each, and the best of each.
_FOUND: LiteralString = """
with found as materialized (
  select x.message, x.session from message_search x
  where (%(within)s::uuid is null or x.session = %(within)s::uuid) and """
_SEEN: LiteralString = """
), seen as materialized (
  select s.id from (select distinct session from found) f join sessions s on s.id = f.session where """
_STANDING: LiteralString = """
), standing as materialized (
  select f.message, f.session from found f join seen on seen.id = f.session
  where (f.session is distinct from %(own)s::uuid or f.message < %(since)s::bigint) and not """
_RANKED: LiteralString = """
), newest as materialized (
  select session, count(*) as hits from standing group by session order by max(message) desc limit 100
), nearest as (
  select message, session, hits from (
    select t.message, t.session, n.hits,
      row_number() over (partition by t.session order by t.message desc) as nth
    from standing t join newest n on n.session = t.session
  ) placed where nth <= case when %(within)s::uuid is null then 10 else 1000 end
), ranked as (
  select n.message, n.session, n.hits, r.rank,
    row_number() over (partition by n.session order by r.rank desc, n.message desc) as place
  from nearest n join message_search x on x.message = n.message
  cross join lateral (select ts_rank(x.words, %(rank)s::tsquery, 1) as rank) r
)
select message, session, hits from ranked where place = 1 or %(within)s::uuid is not null
order by rank desc, message desc limit 100
"""
_BEST: LiteralString = _SEEN + ALL_MAY_SEE + _STANDING + _TAKEN_BACK + _RANKED
_BY_WORDS: LiteralString = "x.words @@ %(query)s::tsquery"
# What may stand inside a longer word. `beside`: what can only be found as words.
_BY_PARTS: LiteralString = """x.body ilike %(part)s and x.body ilike all (%(parts)s::text[])
    and (%(beside)s::tsquery is null or x.words @@ %(beside)s::tsquery)"""
FIND_WORDS = named(
    "find_words",
    _FOUND + _BY_WORDS + _BEST,
    "message_search_words",
    "sessions_pkey",
    "edits_taken_back",
    "message_search_pkey",
)
FIND_PARTS = named(
    "find_parts",
    _FOUND + _BY_PARTS + _BEST,
    "message_search_body",
    "sessions_pkey",
    "edits_taken_back",
    "message_search_pkey",
)

# The hits of one page with what stands around each; asked again whether they may be seen, since hits may be minutes old
# to who pages through them.
_HITS: LiteralString = """
select h.nth, m.id, m.session, m.turn, s.title, s.kind, m.author, p.name, m.role, m.created_at, x.body,
  not st.active as covered,
  before.id as before_id, before.author as before_author, before.name as before_name, before.role as before_role,
  before.body as before_body,
  after.id as after_id, after.author as after_author, after.name as after_name, after.role as after_role,
  after.body as after_body
from unnest(%(messages)s::bigint[]) with ordinality as h(message, nth)
join messages m on m.id = h.message
join message_state st on st.id = m.id and (st.active or st.compacted)
join message_search x on x.message = m.id
join sessions s on s.id = m.session and """
_AROUND: LiteralString = """
left join principals p on p.id::text = m.author
left join lateral (
  select b.id, b.author, q.name, b.role, left(y.body, %(around)s) as body
  from messages b join message_state bs on bs.id = b.id and (bs.active or bs.compacted)
  left join message_search y on y.message = b.id
  left join principals q on q.id::text = b.author
  where b.session = m.session and b.id < m.id order by b.id desc limit 1
) before on true
left join lateral (
  select b.id, b.author, q.name, b.role, left(y.body, %(around)s) as body
  from messages b join message_state bs on bs.id = b.id and (bs.active or bs.compacted)
  left join message_search y on y.message = b.id
  left join principals q on q.id::text = b.author
  where b.session = m.session and b.id > m.id order by b.id limit 1
) after on true
order by h.nth
"""
SHOW_HITS = named(
    "show_hits",
    _HITS + ALL_MAY_SEE + _AROUND,
    "messages_pkey",
    "message_search_pkey",
    "messages_of_session",
)

# What a handle names, where every reader may see it and it was not taken back. A child reads what lies in its own
# session or was given to it: the handle stands in what it was told, which no tool result and no child's report is.
_GIVEN: LiteralString = """ and (%(child)s::uuid is null or s.id = %(child)s::uuid or exists (
  select 1 from messages g where g.session = %(child)s::uuid and g.role = 'user' and g.author not in ('tool', 'child')
    and strpos(g.content, %(handle)s) > 0))"""
_ARTIFACT: LiteralString = """
select a.body from artifacts a join sessions s on s.id = a.session where a.id = %(id)s and """
_MESSAGE: LiteralString = """
select f.content from (select m.id as message, m.session, m.content from messages m where m.id = %(id)s) f
join sessions s on s.id = f.session where not """
_AND: LiteralString = " and "
READ_ARTIFACT = named("read_artifact", _ARTIFACT + ALL_MAY_SEE + _GIVEN, "artifacts_pkey", "sessions_pkey")
READ_MESSAGE = named(
    "read_message",
    _MESSAGE + _TAKEN_BACK + _AND + ALL_MAY_SEE + _GIVEN,
    "messages_pkey",
    "sessions_pkey",
    "edits_taken_back",
)

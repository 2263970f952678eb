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

_CANDIDATES: LiteralString = """
with c as materialized (
  (select id from sessions where owner = (%(readers)s::uuid[])[1] limit %(few)s + 1)
  union (select session from session_people where principal = (%(readers)s::uuid[])[1] limit %(few)s + 1)
  union (select id from sessions where audience = 'team' limit %(few)s + 1)
)
select (select count(*) from c) <= %(few)s as few, array(select s.id from c join sessions s on s.id = c.id where """
_AND_NEWEST: LiteralString = ") as sessions, (select max(message) from message_search) as newest"

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

# The sessions that one may search, where they are few: then those are searched, and not the whole house for them. Owned
# by the first reader, shared with that one, or the team's; of these what every other reader may see too. Of more than
# `few` candidates the list is not whole, and of no use.
WHERE_TO_LOOK = named(
    "where_to_look",
    _CANDIDATES + ALL_MAY_SEE + _AND_NEWEST,
    "sessions_by_owner",
    "session_people_of|session_people_pkey",
    "sessions_of_team",
)

# Found is everybody's, in a stretch of ids, and fenced off by `materialized`, so that no plan walks the newest messages
# in the hope of a match. Then what may be seen, what stands (message_state says so of one message; here the few rewinds
# are taken out of many), the newest 100 sessions with 10 messages each, and the best of each.
_FOUND: LiteralString = """
with found as materialized (
  select x.message, x.session from message_search x
  where (%(only)s::uuid[] is null or x.session = any(%(only)s::uuid[]))
    and x.message > %(after)s::bigint and x.message <= %(upto)s::bigint and """
_SEEN: LiteralString = """
), seen as materialized (
  select s.id, s.kind from (select distinct session from found) f join sessions s on s.id = f.session where """
_STANDING: LiteralString = """
), orphaned as materialized (
  select t.id from seen join turns t on t.session = seen.id and t.parent is not null
  where seen.kind = 'child' and exists (
    with recursive up as (
      select t.parent, t.parent_step
      union all select p.parent, p.parent_step from up join turns p on p.id = up.parent where p.parent is not null
    )
    select 1 from up join messages d on d.turn = up.parent and d.step = up.parent_step and d.ordinal = 0
    join standing_rewinds w on w.session = d.session and d.id between w.first and w.last)
), standing as materialized (
  select f.message, f.session from found f join seen on seen.id = f.session
  where (f.session is distinct from %(own)s::uuid or f.message < %(since)s::bigint)
    and not exists (
      select 1 from standing_rewinds w where w.session = f.session and f.message between w.first and w.last)
    and not exists (select 1 from orphaned join messages m on m.turn = orphaned.id where m.id = f.message)
"""
_RANKED: LiteralString = """
), newest as materialized (
  select session, count(*) as hits from standing group by session order by max(message) desc limit 100
), nearest as (
  select message, session, hits from (
    select t.message, t.session, n.hits,
      row_number() over (partition by t.session order by t.message desc) as nth
    from standing t join newest n on n.session = t.session
  ) placed where nth <= case when %(single)s then 1000 else 10 end
), ranked as (
  select n.message, n.session, n.hits, r.rank,
    row_number() over (partition by n.session order by r.rank desc, n.message desc) as place
  from nearest n join message_search x on x.message = n.message
  cross join lateral (select ts_rank(x.words, %(rank)s::tsquery, 1) as rank) r
)
select message, session, hits from ranked where place = 1 or %(single)s
order by rank desc, message desc limit 100
"""
# Each search is planned for what it asks (search.py); a test explains those plans, for a generic one is never used.
_BEST: LiteralString = _SEEN + ALL_MAY_SEE + _STANDING + _RANKED
_BY_WORDS: LiteralString = "x.words @@ %(query)s::tsquery"
# What may stand inside a longer word. `beside`: what can only be found as words.
_OF_FEW: LiteralString = """
with found as materialized (
  select x.message, x.session from (
    select * from message_search where session = any(%(only)s::uuid[])
      and message > %(after)s::bigint and message <= %(upto)s::bigint offset 0
  ) x where """
_BY_PARTS: LiteralString = """x.folded like %(part)s and x.folded like all (%(parts)s::text[])
    and (%(beside)s::tsquery is null or x.words @@ %(beside)s::tsquery)"""
FIND_WORDS = named(
    "find_words",
    _FOUND + _BY_WORDS + _BEST,
    "sessions_pkey",
    "edits_taken_back",
    "message_search_pkey",
)
# Of few sessions: each text of theirs is looked into. A trigram index finds everybody's, and a planner that cannot know
# how many of those are none (a long text holds most trigrams) would have all of them read.
FIND_PARTS_OF_FEW = named(
    "find_parts_of_few",
    _OF_FEW + _BY_PARTS + _BEST,
    "message_search_of_session|message_search_pkey",
    "sessions_pkey",
    "edits_taken_back",
)
FIND_PARTS = named(
    "find_parts",
    _FOUND + _BY_PARTS + _BEST,
    "sessions_pkey",
    "edits_taken_back",
    "message_search_pkey",
)

# The hits of one page with what stands around each; asked again whether they may be seen, since hits may be minutes old
# to who pages through them.
_HITS: LiteralString = """
select h.nth, m.id, m.session, m.turn, s.title, s.kind, m.author, p.name, m.role, m.created_at,
  left(m.content, %(chars)s) as content,
  not st.active as covered,
  before.id as before_id, before.author as before_author, before.name as before_name, before.role as before_role,
  before.content as before_content,
  after.id as after_id, after.author as after_author, after.name as after_name, after.role as after_role,
  after.content as after_content
from unnest(%(messages)s::bigint[]) with ordinality as h(message, nth)
join messages m on m.id = h.message
join message_state st on st.id = m.id and (st.active or st.compacted)
join sessions s on s.id = m.session and """
_AROUND: LiteralString = """
left join principals p on p.id::text = m.author
left join lateral (
  select b.id, b.author, q.name, b.role, left(b.content, %(around)s) as content
  from messages b join message_state bs on bs.id = b.id and (bs.active or bs.compacted)
  left join principals q on q.id::text = b.author
  where b.session = m.session and b.id < m.id order by b.id desc limit 1
) before on true
left join lateral (
  select b.id, b.author, q.name, b.role, left(b.content, %(around)s) as content
  from messages b join message_state bs on bs.id = b.id and (bs.active or bs.compacted)
  left join principals q on q.id::text = b.author
  where b.session = m.session and b.id > m.id order by b.id limit 1
) after on true
order by h.nth
"""
SHOW_HITS = named(
    "show_hits",
    _HITS + ALL_MAY_SEE + _AROUND,
    "messages_pkey",
    "messages_of_session",
)

# What a handle names, where every reader may see it and it was not taken back. A child reads what lies in its own
# session or was given to it: the handle stands in what it was told, which no tool result and no child's report is.
_GIVEN: LiteralString = """ and (%(child)s::uuid is null or s.id = %(child)s::uuid or exists (
  select 1 from messages g where g.session = %(child)s::uuid and g.role = 'user' and g.author not in ('tool', 'child')
    and strpos(g.content, %(handle)s) > 0))"""
# A page by characters, of a text that is stored as bytes: where each is one byte the page is a slice of the value, of
# which the database reads no more; else it decodes what stands before as well, and sends the page alone.
_ARTIFACT: LiteralString = """
select case when a.characters = octet_length(a.body)
    then convert_from(substring(a.body from %(first)s::int + 1 for %(most)s::int), 'UTF8')
    else substr(convert_from(a.body, 'UTF8'), %(first)s::int + 1, %(most)s::int) end as page,
  coalesce(a.characters, length(convert_from(a.body, 'UTF8'))) as total
from artifacts a join sessions s on s.id = a.session
where a.id = %(id)s and (
  not exists (select 1 from messages m where m.turn = a.turn)
  or exists (
    select 1 from messages m join message_state st on st.id = m.id and (st.active or st.compacted)
    where m.turn = a.turn)
) and """
_MESSAGE: LiteralString = """
select m.content from messages m join message_state st on st.id = m.id and (st.active or st.compacted)
join sessions s on s.id = m.session
where m.id = %(id)s and """
# An artifact goes and comes with the turn that left it.
READ_ARTIFACT = named(
    "read_artifact", _ARTIFACT + ALL_MAY_SEE + _GIVEN, "artifacts_pkey", "sessions_pkey", "messages_step_key"
)
READ_MESSAGE = named("read_message", _MESSAGE + ALL_MAY_SEE + _GIVEN, "messages_pkey", "sessions_pkey")

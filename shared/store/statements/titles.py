"""A session's title: the first line that was said, or what a model made of it, once; a person's own stays.

Lock order: the session row first. `titled` says who wrote it, and how far asking a model has come (0005_fallback.sql).
"""

from __future__ import annotations

from shared.store.statements import named

# Chats of the last day that only have their first line, once a turn of a person has ended in an answer and nobody is at
# it or about to be. The second is asked under the session's gate and is the mark too: one turn is ever admitted for it.
_DUE = """
s.titled = 'first' and s.kind = 'chat' and s.created_at > clock_now() - interval '1 day'
  and exists (select 1 from turns d where d.session = s.id and d.status = 'done' and d.class = 'interactive')
  and not exists (select 1 from turns t where t.session = s.id and t.status in ('queued', 'running', 'parked'))
"""
_LOOK = "select s.id as session, s.owner from sessions s where "
_MARK = "update sessions s set titled = 'asked' where s.id = %(session)s and "
_OLDEST = "order by s.created_at limit %(limit)s"
UNTITLED = named("untitled", _LOOK + _DUE + _OLDEST, "sessions_untitled", "turns_of_session")
STILL_UNTITLED = named("still_untitled", _MARK + _DUE + "returning s.id", "sessions_pkey|sessions_untitled")

# Before the call, so that whoever dies at it leaves behind that it was tried. The prompt of titles is a prefix as any
# other, so that the call can be written again; no session has it. One row wherever the fence is the holder's.
TITLE_BEGIN = named(
    "title_begin",
    """
with s as (
  select id, titled = 'asked' as due from sessions where id = %(session)s and fence = %(fence)s for no key update
), p as (
  insert into prefixes (digest, system_text, stable_length, context_length, tools_text)
  select %(digest)s, %(system_text)s, 0, 0, '[]' from s where s.due
  on conflict (digest) do nothing
), u as (
  update sessions set titled = 'kept' from s where sessions.id = s.id and s.due
)
select coalesce(s.due, false) as due from s
""",
    "sessions_pkey",
)
# What a title is made of: how the conversation began, and the first answer.
TITLE_MATERIAL = named(
    "title_material",
    """
select (select left(m.content, 16000) from messages m where m.session = %(session)s
   and not exists (select 1 from standing_rewinds w where w.session = m.session and m.id between w.first and w.last)
   order by m.id limit 1) as said,
  (select left(t.answer, 4000) from turns t
   where t.session = %(session)s and t.status = 'done' and t.class = 'interactive' and not exists (
     select 1 from messages m join standing_rewinds w on w.session = m.session and m.id between w.first and w.last
     where m.turn = t.id)
   order by t.seq limit 1) as answer
""",
    "messages_of_session",
    "turns_of_session",
)
# Only where the first line still stands: a person may have written one meanwhile.
TITLE_WRITTEN = named(
    "title_written",
    """
with s as (
  select id from sessions where id = %(session)s and fence = %(fence)s for no key update
), u as (
  update sessions set title = %(title)s, titled = 'model' from s where sessions.id = s.id and sessions.titled = 'kept'
  returning 1
)
select exists (select 1 from u) as written from s
""",
    "sessions_pkey",
)
# A person's. It needs no fence: nothing that a holder does rests on it.
TITLE_SET = named(
    "title_set",
    "update sessions set title = %(title)s, titled = 'person' where id = %(session)s",
    "sessions_pkey",
)

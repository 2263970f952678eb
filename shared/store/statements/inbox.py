"""What anyone but the holder writes: a turn with its first input, a steer, a cancel. Rows, then the ring.

Lock order: the session's gate, then the turn row (whole to steer, a compare-and-set to cancel); a parked turn's cancel
locks its session first, because the fence rises with it.
"""

from __future__ import annotations

from shared.store.statements import named

# Serialises the admissions of one session (several clients at once), so that the bound and `on_busy` are exact.
SESSION_GATE = named("session_gate", "select pg_advisory_xact_lock(7231002, hashtext(%(session)s::text))")
LIVE_TURN = named(
    "live_turn",
    """
select id, status, class, parked_on from turns
where session = %(session)s and status in ('running', 'parked') limit 1 for share
""",
    "turns_one_holder",
)
# A steer may have to end what the turn sleeps for. Locked whole at once: a lock made stronger later deadlocks.
LIVE_TURN_ALONE = named(
    "live_turn_alone",
    """
select id, status, class, parked_on from turns
where session = %(session)s and status in ('running', 'parked') limit 1 for update
""",
    "turns_one_holder",
)
QUEUED_COUNT = named(
    "queued_count",
    "select count(*) as n from turns where session = %(session)s and status = 'queued'",
    "turns_queue_of_session",
)
# What is said first is the title of a session that has none, until a model or a person writes a better one. A session
# that its holder has locked is left alone: who steers has locked the turn by now, and would wait for it the wrong way
# round. What is said next has the same chance.
ADMIT_TURN = named(
    "admit_turn",
    """
with t as (
  insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, cap_usd, job, shared_key)
  values (%(turn)s, %(session)s, %(class)s, %(principal)s, clock_now() + %(aging_s)s * interval '1 second',
    %(deadline_s)s, %(max_steps)s, %(cap_usd)s, %(job)s, %(shared_key)s)
  returning id, session, status, created_at
), i as (
  insert into inbox (session, turn, dedupe_key, kind, author, payload, stable_prefix_len)
  select t.session, t.id, 'input:' || t.id, 'input', %(principal)s, %(payload)s, %(stable_prefix_len)s from t
  where %(payload)s::text is not null
  returning id
), n as (
  update sessions set title = %(title)s, titled = 'first' where id = (
    select o.id from sessions o
    where o.id = %(session)s and o.title = '' and o.titled is null and %(title)s <> ''
    for no key update skip locked
  )
)
select t.id, t.status, t.created_at, (select id from i) as inbox from t
""",
)
# A turn that was at work and waits for a worker again (drained, taken over, woken) can be steered like a running one.
STARTED_TURN_ALONE = named(
    "started_turn_alone",
    """
select id, status, class, parked_on from turns
where session = %(session)s and status = 'queued' and started_at is not null order by seq limit 1 for update
""",
    "turns_queue_of_session",
)
STEERABLE = named(
    "steerable",
    "select id, session, status, class, started_at from turns where id = %(turn)s for update",
    "turns_pkey",
)
# Whose word a turn carries, and who is about to speak. Read after the turn is locked: contributors come under its lock.
VOICES = named(
    "voices",
    """
select p.id, p.role, p.id = any(t.contributors || t.requested_by) as heard
from turns t join principals p on p.id = any(t.contributors || t.requested_by || %(principal)s::uuid)
where t.id = %(turn)s
""",
    "turns_pkey",
    "principals_pkey",
)
CONTRIBUTE = named(
    "contribute",
    """
update turns set contributors = contributors || %(principal)s::uuid
where id = %(turn)s and requested_by <> %(principal)s and not %(principal)s = any(contributors) returning id
""",
    "turns_pkey",
)
UNREAD_OF_TURN = named(
    "unread_of_turn",
    "select count(*) as n from inbox where session = %(session)s and turn = %(turn)s and folded_into is null",
    "inbox_waiting|inbox_unread|inbox_of_turn",
)
ADD_TO_INBOX = named(
    "add_to_inbox",
    """
insert into inbox (session, turn, dedupe_key, kind, author, payload)
values (%(session)s, %(turn)s, %(dedupe_key)s, %(kind)s, %(author)s, %(payload)s)
on conflict (dedupe_key) do nothing
returning id
""",
)
# `named`: it is the words of a person, in a session where two or more people speak or were asked to. What was built by
# a machine (a job's prompt, a child's goal) is in nobody's voice.
# What is asked of the transcript is its own turn's to do, and is done with that turn: one that was cancelled leaves it
# undone. A compaction is made by whoever holds the session first.
WAITING = named(
    "waiting",
    """
select i.id, i.kind, i.author, i.payload, i.stable_prefix_len, p.name as author_name,
  case when s.audience = 'private' or p.kind <> 'person' or i.stable_prefix_len is not null
    or i.kind not in ('input', 'steer') or (i.kind = 'input' and s.kind = 'child') then false
  else (
    select count(*) > 1 from (
      select q.id from principals q where q.kind = 'person' and q.id in (
        select t.requested_by from turns t where t.session = %(session)s
        union all select unnest(t.contributors) from turns t where t.session = %(session)s
        union all select w.author from inbox w where w.session = %(session)s and w.folded_into is null
          and w.kind not in ('rewind', 'restore', 'compact')
        union all select o.owner from sessions o where o.id = %(session)s and o.audience = 'people'
        union all select sp.principal from session_people sp where sp.session = %(session)s
      ) limit 2
    ) people
  ) end as named
from inbox i
join principals p on p.id = i.author
join sessions s on s.id = i.session
where i.session = %(session)s and i.folded_into is null and (i.kind <> 'input' or i.turn = %(turn)s)
  and (i.kind <> 'child' or not exists (select 1 from turns h where h.id = %(turn)s and h.class = 'chore'))
  and (i.kind not in ('rewind', 'restore', 'compact') or i.turn = %(turn)s or (
    i.kind = 'compact' and exists (select 1 from turns o where o.id = i.turn and o.status = 'queued')))
order by i.id limit %(limit)s
""",
    "inbox_waiting|inbox_unread",
    "turns_of_session",
)

PEEK = named("peek", "select class, status, parked_on, started_at from turns where id = %(turn)s", "turns_pkey")

# --- cancel: the first commit wins ----------------------------------------------------------------------------------

CANCEL_QUEUED = named(
    "cancel_queued",
    """
update turns set status = 'cancelled', finished_at = clock_now(), cancelled_by = %(principal)s,
  cancel_requested_at = clock_now()
where id = %(turn)s and status = 'queued' and step = 0 returning id
""",
    "turns_pkey",
)
CANCEL_RUNNING = named(
    "cancel_running",
    """
update turns set cancel_requested_at = coalesce(cancel_requested_at, clock_now()), cancelled_by = %(principal)s
where id = %(turn)s and status = 'running' returning id, holder
""",
    "turns_pkey",
)
# A turn that has begun and that nobody holds: parked, or queued again. Each open call gets its result here, so that the
# transcript ends in what the provider accepts; what may have happened in the hands of a lost worker is `unknown`.
CANCEL_PARKED = named(
    "cancel_parked",
    """
with s as (update sessions set fence = fence + 1 where id = %(session)s returning id, fence), m as (
  insert into messages (session, turn, step, ordinal, author, role, content, fence)
  select s.id, %(turn)s, x.step, x.ordinal, 'tool', 'user', x.content, s.fence
  from s, unnest(%(m_step)s::int[], %(m_ordinal)s::int[], %(m_content)s::text[])
    with ordinality as x(step, ordinal, content, n)
  order by x.n
  returning 1
), r as (
  update tool_runs set finished_at = clock_now(), fence = s.fence,
    status = case when tool_runs.status = 'started' and repeat <> 'repeatable' then 'unknown'
      else 'cancelled' end
  from s where tool_runs.turn = %(turn)s and tool_runs.status in ('asked', 'approved', 'started')
  returning 1
)
update turns set status = 'cancelled', finished_at = clock_now(), cancelled_by = %(principal)s,
  cancel_requested_at = clock_now(), parked_on = null, parked_at = null, wake_at = null, fence = s.fence
from s where turns.id = %(turn)s and turns.session = s.id and turns.status in ('parked', 'queued') returning turns.id
""",
    "turns_pkey",
)

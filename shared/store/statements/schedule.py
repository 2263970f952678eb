"""What the sweep reads and writes: waiting turns, parks, idle inboxes, what is kept no longer.

Each batch has a LIMIT, each row its own transaction, and each write compares what the batch read, so that two
schedulers are harmless. Lock order: a tick's or a job's row first, then what `shared.store.intake` locks.
"""

from __future__ import annotations

from shared.store.statements import named

# --- rings -------------------------------------------------------------------------------------------------------

# Claimable sessions by class, of the front of each principal's queue: the loose index scan of the claim, bounded to
# 2,000 rows. `truncated` says that there was more; then a class may wait that this did not see.
WAITING_CLASSES = named(
    "waiting_classes",
    """
with recursive waiting(principal) as (
  (select requested_by from turns where status = 'queued' order by requested_by limit 1)
  union all
  select (select t.requested_by from turns t
          where t.status = 'queued' and t.requested_by > w.principal order by t.requested_by limit 1)
  from waiting w where w.principal is not null
), heads as (
  select t.session, t.class from waiting w
  cross join lateral (
    select session, class from turns
    where status = 'queued' and requested_by = w.principal order by admit_key, id limit 500
  ) t
  where w.principal is not null limit 2000
)
select h.class, count(distinct h.session)::int as sessions, (select count(*) = 2000 from heads) as truncated
from heads h
where not exists (select 1 from turns r where r.session = h.session and r.status in ('running', 'parked'))
group by h.class
""",
    "turns_admission",
    "turns_one_holder",
)

# --- parks and deadlines -------------------------------------------------------------------------------------------

WAKE_TIMES = named(
    "wake_times",
    """
select id, wake_at from turns where status = 'parked' and wake_at <= clock_now() order by wake_at limit %(limit)s
""",
    "turns_to_wake",
)
# A park of these reasons without a time to wake would sleep for ever.
TIMELESS_PARKS = named(
    "timeless_parks",
    """
select id from turns where status = 'parked' and wake_at is null and parked_on in ('backoff', 'time')
  and parked_at < clock_now() - interval '5 seconds' limit %(limit)s
""",
    "turns_to_wake",
)
WAKE_TIMELESS = named(
    "wake_timeless",
    """
update turns set wake_at = clock_now() where id = %(turn)s and status = 'parked' and wake_at is null
  and parked_on in ('backoff', 'time') returning id
""",
    "turns_pkey",
)
OVERDUE = named(
    "overdue",
    """
select count(*)::int as n from turns
where status = 'running' and deadline_at < clock_now() - interval '60 seconds'
""",
    "turns_held",
)
LEFT_RESERVED = named(
    "left_reserved",
    """
select count(*)::int as n from calls c join turns t on t.id = c.turn
where c.status = 'reserved' and t.status in ('done', 'failed', 'cancelled')
""",
    "calls_one_reserved_a_turn",
)

# --- idle sessions -------------------------------------------------------------------------------------------------

IDLE_INBOX = named(
    "idle_inbox",
    """
select i.session, (array_agg(i.author order by i.id))[1] as author from inbox i
where i.folded_into is null and i.kind <> 'input' and i.created_at < clock_now() - interval '2 seconds'
  and not exists (
    select 1 from turns t where t.session = i.session and t.status in ('queued', 'running', 'parked')
  )
group by i.session order by min(i.id) limit %(limit)s
""",
    "inbox_waiting",
)
STILL_IDLE = named(
    "still_idle",
    """
select 1 as idle where not exists (
    select 1 from turns t where t.session = %(session)s and t.status in ('queued', 'running', 'parked'))
  and exists (
    select 1 from inbox i where i.session = %(session)s and i.folded_into is null and i.kind <> 'input')
""",
    "turns_of_session",
    "inbox_waiting",
)
FORGET_ANSWERS = named(
    "forget_answers",
    """
delete from idempotency where (principal, key) in (
  select principal, key from idempotency where created_at < clock_now() - interval '24 hours'
  order by created_at limit %(limit)s for update skip locked
)
""",
    "idempotency_by_age",
)

"""What the scheduler reads and writes beside liveness: parks, inboxes, ticks, deliveries, search, clock.

Each batch has a LIMIT, each row its own transaction, and each write compares what the batch read, so that two
schedulers are harmless. Lock order: a tick's or a job's row first, then what `shared.store.intake` locks.
"""

from __future__ import annotations

from shared.store.statements import named

# --- parks and deadlines -------------------------------------------------------------------------------------------

WAKE_TIMES = named(
    "wake_times",
    """
select id, wake_at from turns where status = 'parked' and wake_at <= clock_now() order by wake_at limit %(limit)s
""",
    "turns_to_wake",
)
# Each park has a limit. One without a time to wake would sleep for ever, should nobody come.
TIMELESS_PARKS = named(
    "timeless_parks",
    """
select id from turns where status = 'parked' and wake_at is null
  and parked_at < clock_now() - interval '5 seconds' limit %(limit)s
""",
    "turns_to_wake",
)
WAKE_TIMELESS = named(
    "wake_timeless",
    """
update turns set wake_at = clock_now() where id = %(turn)s and status = 'parked' and wake_at is null
returning id
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
where i.folded_into is null and i.kind <> 'input' and i.kind not in ('rewind', 'restore', 'compact')
  and i.created_at < clock_now() - interval '2 seconds'
  and not exists (
    select 1 from turns t where t.session = i.session and t.status in ('queued', 'running', 'parked')
  )
group by i.session order by min(i.id) limit %(limit)s
""",
    "inbox_waiting|inbox_unread",
)
STILL_IDLE = named(
    "still_idle",
    """
select 1 as idle where not exists (
    select 1 from turns t where t.session = %(session)s and t.status in ('queued', 'running', 'parked'))
  and exists (
    select 1 from inbox i where i.session = %(session)s and i.folded_into is null and i.kind <> 'input'
      and i.kind not in ('rewind', 'restore', 'compact'))
""",
    "turns_of_session",
    "inbox_waiting|inbox_unread",
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

# --- ticks ----------------------------------------------------------------------------------------------------------

# Times a job by its own row: `next_at` null means that it is still to be computed (a new, changed or resumed job).
DUE_JOBS = named(
    "due_jobs",
    """
select id, folder from jobs
where paused_at is null and removed_at is null and (next_at is null or next_at <= clock_now())
order by next_at nulls first limit %(limit)s
""",
    "jobs_due",
)
JOB_COLUMNS = named(
    "job_due",
    """
select j.*, clock_now() as now,
  (select count(*)::int from ticks t where t.job = j.id and t.status = 'started') as open_runs
from jobs j
where j.id = %(job)s and j.paused_at is null and j.removed_at is null
  and (j.next_at is null or j.next_at <= clock_now())
for update of j skip locked
""",
    "jobs_pkey|jobs_due",
    "ticks_open",
)
JOB_NEXT = named("job_next", "update jobs set next_at = %(next_at)s where id = %(job)s", "jobs_pkey")
JOB_BROKEN = named(
    "job_broken",
    "update jobs set paused_at = clock_now(), updated_at = clock_now() where id = %(job)s",
    "jobs_pkey",
)
# What a breaker looks at: answers as far as they are compared, and what was charged.
PAST_RUNS = named(
    "past_runs",
    """
select left(coalesce(t.answer, ''), 20000) as answer, t.spent_usd + t.children_usd as usd
from ticks k join turns t on t.id = k.turn
where k.job = %(job)s and k.status = 'done' and t.status = 'done'
  and (%(since)s::timestamptz is null or k.created_at >= %(since)s)
order by k.instant desc limit %(limit)s
""",
    "ticks_pkey",
    "turns_pkey",
)
JOB_TRIPPED = named(
    "job_tripped",
    """
with j as (
  update jobs set paused_at = clock_now(), updated_at = clock_now(), paused_why = %(why)s
  where id = %(job)s and paused_at is null returning id, name
)
insert into audit (action, subject, detail) select 'job.paused', name, %(why)s from j
""",
    "jobs_pkey",
)
TICK_ADD = named(
    "tick_add",
    """
insert into ticks (id, job, instant, status, error_code, error_text, ended_at)
values (%(tick)s, %(job)s, %(instant)s, %(status)s, %(error_code)s, %(error_text)s,
  case when %(status)s in ('failed', 'skipped') then clock_now() end)
on conflict (job, instant) do nothing returning id
""",
)
TICK_STARTED = named(
    "tick_started",
    "update ticks set status = 'started', turn = %(turn)s where id = %(tick)s and status = 'due' returning id",
    "ticks_id_key|ticks_open",
)
TICK_ENDED = named(
    "tick_ended",
    """
update ticks set status = %(status)s, error_code = %(error_code)s, error_text = %(error_text)s, ended_at = clock_now()
where id = %(tick)s and status in ('due', 'started') returning id
""",
    "ticks_id_key|ticks_open",
)
# Ticks that were asked for by hand; those of cron are made and started in one transaction and never stand as `due`.
DUE_TICKS = named(
    "due_ticks",
    """
select t.id, t.job, j.folder from ticks t join jobs j on j.id = t.job
where t.status = 'due' order by t.created_at limit %(limit)s
""",
    "ticks_open",
)
TICK_HOLD = named(
    "tick_hold",
    """
select t.id as tick, t.instant, t.manual, j.* from ticks t join jobs j on j.id = t.job
where t.id = %(tick)s and t.status = 'due' for update of t skip locked
""",
    "ticks_id_key|ticks_open",
)

# --- deliveries -----------------------------------------------------------------------------------------------------

ENDED_RUNS = named(
    "ended_runs",
    """
select t.id, t.turn from ticks t join turns u on u.id = t.turn
where t.status = 'started' and u.status in ('done', 'failed', 'cancelled') order by u.finished_at limit %(limit)s
""",
    "ticks_open|ticks_of_turn",
)
ENDED_RUN = named(
    "ended_run",
    """
select t.id as tick, t.instant, u.id as turn, u.status, u.error_code, u.error_text, j.name, j.deliver_session,
  j.deliver_file
from ticks t join turns u on u.id = t.turn join jobs j on j.id = t.job
where t.id = %(tick)s and t.status = 'started' and u.status in ('done', 'failed', 'cancelled')
for update of t skip locked
""",
    "ticks_id_key|ticks_open",
)
DELIVERY_ADD = named(
    "delivery_add",
    """
insert into deliveries (id, tick, turn, kind, target)
values (%(delivery)s, %(tick)s, %(turn)s, %(kind)s, %(target)s)
on conflict (tick, kind, target) do nothing returning id
""",
)
DUE_DELIVERIES = named(
    "due_deliveries",
    "select id from deliveries where status = 'due' and next_at <= clock_now() order by next_at limit %(limit)s",
    "deliveries_due",
)
# Counted and put off before it is tried: a delivery that kills its process comes back later, not at once and for ever.
DELIVERY_TAKE = named(
    "delivery_take",
    """
update deliveries set attempts = attempts + 1,
  next_at = clock_now() + least(3600, 2 * power(2, least(attempts, 11))) * interval '1 second'
where id = %(id)s and status = 'due' and next_at <= clock_now()
returning id, tick, turn, kind, target, attempts
""",
    "deliveries_pkey|deliveries_due",
)
DELIVERY_TEXT = named(
    "delivery_text",
    """
select d.id, d.tick, d.turn, d.kind, d.target, d.attempts, t.instant, t.manual, j.id as job, j.name, j.zone,
  j.principal, u.session, u.status, u.answer, u.error_code, u.error_text, u.spent_usd, u.cost_unknown, u.steps,
  u.finished_at, s.model,
  (select count(*)::int from tool_runs r
    where r.session = u.session and r.turn = u.id and r.status = 'unknown') as unknown_effects,
  (
    with recursive below(id) as (
      select u.id
      union all
      select c.id from below b join turns c on c.parent = b.id
    )
    select coalesce(json_agg(w order by w.asked_at, w.step, w.ordinal), '[]'::json) from (
      select a.step, a.ordinal, a.tool, a.why, a.status, a.created_at as asked_at, a.decided_at, p.name as decided_by
      from below b join approvals a on a.turn = b.id left join principals p on p.id = a.decided_by
      order by a.created_at limit 50
    ) w
  ) as waited
from deliveries d join ticks t on t.id = d.tick join jobs j on j.id = t.job
join turns u on u.id = d.turn join sessions s on s.id = u.session
where d.id = %(id)s
""",
    "deliveries_pkey|deliveries_due|deliveries_tick_kind_target_key",
)
DELIVERY_DONE = named(
    "delivery_done",
    """
update deliveries set status = 'done', evidence = %(evidence)s, error_text = null, ended_at = clock_now()
where id = %(id)s and status = 'due' returning id
""",
    "deliveries_pkey|deliveries_due|deliveries_tick_kind_target_key",
)
DELIVERY_FAILED = named(
    "delivery_failed",
    """
update deliveries set error_text = %(error_text)s, status = case when attempts >= %(most)s then 'failed' else 'due' end,
  ended_at = case when attempts >= %(most)s then clock_now() end
where id = %(id)s and status = 'due' returning status, attempts
""",
    "deliveries_pkey|deliveries_due|deliveries_tick_kind_target_key",
)

# --- search ---------------------------------------------------------------------------------------------------------

UNINDEXED = named(
    "unindexed",
    """
select m.id, m.session, m.author, m.role, left(m.content, %(chars)s) as content from messages m
where m.id >= (select indexed_below from message_search_mark)
  and not exists (select 1 from message_search x where x.message = m.id)
order by m.id limit %(limit)s
""",
    "messages_pkey",
    "message_search_pkey",
)
# What another cut made (shared/words.py), such as that of a scheduler of the release before, beside ours in an upgrade.
INDEXED_OLD = named(
    "indexed_old",
    """
select m.id, m.session, m.author, m.role, left(m.content, %(chars)s) as content
from message_search x join messages m on m.id = x.message
where x.made_by = 0 and x.made_by < %(version)s
order by x.message desc limit %(limit)s
""",
    "message_search_old",
    "messages_pkey",
)
INDEX_MESSAGE = named(
    "index_message",
    """
insert into message_search (message, session, words, folded, made_by)
values (%(id)s, %(session)s, %(words)s::tsvector, %(folded)s, %(version)s)
on conflict (message) do update set words = excluded.words, folded = excluded.folded, made_by = excluded.made_by
where message_search.made_by < excluded.made_by
""",
)
# The newest id handed out, and two ends of the transactions that may still hold an older one uncommitted.
HORIZON = named(
    "horizon",
    """
select (select last_value from transcript_id) as newest, pg_snapshot_xmin(s)::text::bigint as oldest_running,
  pg_snapshot_xmax(s)::text::bigint as next_transaction
from pg_current_snapshot() s
""",
)
MARK_INDEXED = named(
    "mark_indexed",
    """
update message_search_mark set indexed_below = %(below)s where indexed_below < %(below)s
  and not exists (
    select 1 from messages m where m.id >= indexed_below and m.id < %(below)s
      and not exists (select 1 from message_search x where x.message = m.id)
  )
returning indexed_below
""",
    "messages_pkey",
)

# --- the test clock -------------------------------------------------------------------------------------------------

CLOCK_READ = named("clock_read", "select offset_s, target_s, jump from test_clock")
# The last millisecond is a step of its own: whoever waits for the target is answered after the rest, not before it.
CLOCK_MOVE = named(
    "clock_move",
    """
update test_clock set
  offset_s = case
    when jump then greatest(offset_s, target_s - 0.001)
    when target_s - offset_s < 0.002 then target_s
    else least(target_s - 0.001, offset_s + %(step_s)s)
  end,
  jump = false
where offset_s < target_s or jump
returning offset_s, target_s
""",
)
# What must come to rest between two steps of the clock. A turn that nobody can claim is not waited for.
UNREST = named(
    "unrest",
    """
select
  (select count(*)::int from turns where status = 'running') as running,
  (select count(*)::int from turns where status = 'parked' and wake_at <= clock_now()) as to_wake,
  (select count(*)::int from jobs
    where paused_at is null and removed_at is null and next_at <= clock_now()) as due_jobs,
  (select count(*)::int from ticks where status = 'due') as due_ticks,
  (select count(*)::int from ticks t join turns u on u.id = t.turn
    where t.status = 'started' and u.status in ('done', 'failed', 'cancelled')) as to_deliver,
  (select count(*)::int from deliveries where status = 'due' and next_at <= clock_now()) as due_deliveries,
  exists (select 1 from turns t where t.status = 'queued'
    and not exists (select 1 from turns r where r.session = t.session and r.status in ('running', 'parked'))
    and exists (
      select 1 from workers w where w.kind = 'worker' and w.stopped_at is null and not w.draining
        and t.class = any(string_to_array(w.classes, ','))
    )) as queued
""",
)

# --- what was counted -----------------------------------------------------------------------------------------------

# Whole values, not differences: sent twice, they say the same.
WRITE_COUNTERS = named(
    "write_counters",
    """
insert into counters (boot, name, value)
select %(boot)s, x.name, x.value from unnest(%(names)s::text[], %(values)s::bigint[]) as x(name, value)
on conflict (boot, name) do update set value = greatest(counters.value, excluded.value),
  written_at = clock_timestamp()
""",
)
ADD_UP_COUNTERS = named(
    "add_up_counters",
    """
with gone as (
  delete from counters where (boot, name) in (
    select c.boot, c.name from counters c
    where c.boot <> '00000000-0000-0000-0000-000000000000' and c.written_at < clock_timestamp() - interval '1 day'
      and not exists (select 1 from workers w where w.boot_id = c.boot)
    limit %(limit)s for update skip locked
  )
  returning name, value
)
insert into counters (boot, name, value)
select '00000000-0000-0000-0000-000000000000', name, sum(value) from gone group by name
on conflict (boot, name) do update set value = counters.value + excluded.value, written_at = clock_timestamp()
""",
)

"""Who is alive: a process's row and its renewal, what the sweep looks at, and what it reads again before it takes.

`workers` times are the real clock's (`clock_timestamp()`), never the test clock's. Lock order: a takeover locks the
session, then the turn; the `workers` row is only read.
"""

from __future__ import annotations

from shared.store.statements import named

# An upsert: a row that was lost (or pruned while its process was stopped) is made again by the next renewal.
BEAT = named(
    "beat",
    """
with was as (select stop_reason from workers where boot_id = %(boot)s)
insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until, draining)
values (%(boot)s, %(kind)s, %(host)s, %(pid)s, %(slots)s, %(classes)s, %(lock_key)s,
  clock_timestamp() + make_interval(secs => %(lease_s)s), %(draining)s)
on conflict (boot_id) do update set beat_at = clock_timestamp(), lease_until = excluded.lease_until,
  draining = excluded.draining, stopped_at = null, stop_reason = null
returning (select stop_reason from was) as was_stopped
""",
)
BEAT_STOP = named(
    "beat_stop",
    """
update workers set stopped_at = clock_timestamp(), stop_reason = %(reason)s, draining = true
where boot_id = %(boot)s and stopped_at is null
""",
    "workers_pkey",
)

# Among how many a limit is shared that nobody keeps for all.
WORKERS = named(
    "workers",
    "select count(*)::int as workers from workers where kind = 'worker' and lease_until > clock_timestamp() "
    "and stopped_at is null",
)

# The lock is looked up, never tried: trying takes it, and for that moment a dead process would look alive.
LOOK = named(
    "look_at_workers",
    """
with held as materialized (
  select (classid::bigint << 32) | objid::bigint as key from pg_locks
  where locktype = 'advisory' and granted and objsubid = 1
    and database = (select oid from pg_database where datname = current_database())
)
select w.boot_id, w.kind, w.pid, w.beat_at, extract(epoch from clock_timestamp() - w.beat_at)::float8 as silent_s,
  w.lease_until < clock_timestamp() as lease_over, exists (select 1 from held where held.key = w.lock_key) as locked,
  server.started as server_started
from (select pg_postmaster_start_time() as started) server left join workers w on w.stopped_at is null
""",
)

# In the takeover's transaction, after its locks: the process may have renewed or locked again since it was judged.
STILL_DEAD = named(
    "still_dead",
    """
select 1 as dead from workers w
where w.boot_id = %(holder)s and w.stopped_at is null and w.beat_at = %(beat_at)s
  and (w.lease_until < clock_timestamp() or not exists (
    select 1 from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and ((l.classid::bigint << 32) | l.objid::bigint) = w.lock_key
      and l.database = (select oid from pg_database where datname = current_database())
  ))
""",
    "workers_pkey",
)
STILL_STOPPED = named(
    "still_stopped",
    """
select 1 as dead where not exists (select 1 from workers w where w.boot_id = %(holder)s and w.stopped_at is null)
""",
    "workers_pkey",
)

# Turns that nobody living holds: the holder's row says stopped, or is gone.
ORPHANS = named(
    "orphans",
    """
select t.id, t.session, t.holder from turns t
where t.status = 'running'
  and not exists (select 1 from workers w where w.boot_id = t.holder and w.stopped_at is null)
limit %(limit)s
""",
    "turns_held",
)

# Only once it holds nothing: until then its row keeps the sweep coming back.
MARK_LOST = named(
    "mark_lost",
    """
update workers set stopped_at = clock_timestamp(), stop_reason = 'lost'
where boot_id = %(holder)s and stopped_at is null and beat_at = %(beat_at)s
  and not exists (select 1 from turns t where t.holder = %(holder)s and t.status = 'running')
returning boot_id
""",
    "workers_pkey",
)
FORGET_WORKERS = named(
    "forget_workers",
    """
delete from workers where boot_id in (
  select w.boot_id from workers w
  where w.stopped_at < clock_timestamp() - interval '1 day'
    and not exists (select 1 from turns t where t.holder = w.boot_id and t.status = 'running')
  limit %(limit)s for update skip locked
)
""",
)
FREE_SLOTS = named(
    "free_slots",
    """
select coalesce((select sum(slots) from workers where stopped_at is null and kind = 'worker' and not draining), 0)::int
  - (select count(*) from turns where status = 'running')::int as free
""",
)

"""Who may run: pick and claim in one transaction, under one advisory transaction lock (late binding).

Lock order: the advisory lock, the session row (skipped when locked), the turn row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow

from shared.store.pool import Connection
from shared.store.statements import named, one

CLAIM_LOCK = 7_231_001

# SKIP LOCKED alone would run 10 where 4 are allowed: this lock is what holds a limit.
CLAIM_LOCK_TAKE = named("claim_lock_take", "select pg_advisory_xact_lock(%(key)s)")

# A loose index scan over principals with a lateral top-n each (hot-path.md: 2.4 ms at 100,000 queued). Of a session
# only the first queued turn is considered, and none while one of it runs or is parked. A person's own running turns
# push the next ones back, so that nobody's flood starves another.
_CANDIDATES = """
with recursive waiting(principal) as (
  (select requested_by from turns where status = 'queued' order by requested_by limit 1)
  union all
  select (select t.requested_by from turns t
          where t.status = 'queued' and t.requested_by > w.principal order by t.requested_by limit 1)
  from waiting w where w.principal is not null
), busy(principal, held) as (
  select requested_by, count(*) from turns where status = 'running' and holder is not null group by requested_by
), candidates as (
  select c.id, c.session, c.admit_key + coalesce(b.held, 0) * interval '30 seconds' as rank, c.seq
  from waiting w
  left join busy b on b.principal = w.principal
  cross join lateral (
    select t.id, t.session, t.admit_key, t.seq from turns t
    where t.status = 'queued' and t.requested_by = w.principal and t.class = any(%(classes)s::text[])
      and not exists (select 1 from turns r where r.session = t.session and r.status in ('running', 'parked'))
      and not exists (select 1 from turns e where e.session = t.session and e.status = 'queued' and e.seq < t.seq)
    order by t.admit_key, t.id"""
_BEST = """
  ) c
  where w.principal is not null and coalesce(b.held, 0) < %(principal_limit)s
)
select c.id, c.session from candidates c join sessions s on s.id = c.session
order by c.rank, c.seq limit 1
for no key update of s skip locked
"""
_USES = ("turns_admission", "turns_one_holder")

# The first of each principal is all that an order among them needs.
CLAIM_PICK = named("claim_pick", _CANDIDATES + " limit 1" + _BEST, *_USES)
# Where that finds nothing, the session of each first one may be locked at this moment (someone is writing to it).
CLAIM_PICK_DEEP = named("claim_pick_deep", _CANDIDATES + " limit 8" + _BEST, *_USES)


def pick(connection: Connection, limits: Mapping[str, Any]) -> DictRow | None:
    """The turn to claim next, its session's row locked; None where nothing may run. Under the claim lock."""
    return one(connection, CLAIM_PICK, limits) or one(connection, CLAIM_PICK_DEEP, limits)


# What the holder must know of its turn and session: both are its alone from the claim on.
_HELD = """
select t.id as turn, t.session, t.fence, t.class, t.attempts, t.takeovers, t.requested_by,
  extract(epoch from clock_now() - t.queued_at)::float8 as waited_s,
  extract(epoch from t.deadline_at - clock_now())::float8 as seconds_left,
  t.step, t.steps, t.refunds, t.max_steps, t.warned, t.cap_usd as turn_cap, t.spent_usd as turn_spent,
  t.reserved_usd as turn_reserved, t.last_tool,
  s.profile, s.provider, s.model, s.workspace, s.folder, s.cap_usd as session_cap, s.spent_usd as session_spent,
  s.reserved_usd as session_reserved, s.prefix, s.last_edit, s.baseline_estimate, s.baseline_billed,
  s.last_breakpoint_message, s.chain_blocks, s.chain_digest, s.ttl, s.created_at as session_started,
  (select coalesce(max(ordinal) + 1, 0) from messages m where m.turn = t.id and m.step = t.step) as next_ordinal,
  (select count(*) from calls c where c.turn = t.id and c.step = t.step + 1 and c.status = 'failed') as failed_tries,
  (select case when c.status = 'failed' then c.purpose end from calls c
   where c.turn = t.id and c.step = t.step + 1 order by c.seq desc limit 1) as failed_purpose
"""

_TAKEN = """
with s as (
  update sessions set fence = fence + 1 where id = %(session)s returning *
), t as (
  update turns set status = 'running', holder = %(holder)s, claim = %(claim)s, attempts = attempts + 1, fence = s.fence,
    started_at = coalesce(started_at, clock_now()),
    deadline_at = coalesce(deadline_at, clock_now() + make_interval(secs => deadline_s))
  from s where turns.id = %(turn)s and turns.session = s.id and turns.status = 'queued'
  returning turns.*
)
"""
CLAIM = named("claim", _TAKEN + _HELD + "from t, s", "turns_pkey", "sessions_pkey")

# Whether a claim whose reply was lost is there. Asked under the claim lock, which the lost transaction held to its end.
_STANDING = """
from turns t join sessions s on s.id = t.session
where t.holder = %(holder)s and t.status = 'running' and t.claim = %(claim)s
"""
CLAIMED = named("claimed", _HELD + _STANDING, "turns_held")

"""How a right to write ends: finish, park, requeue; and how it is taken away. The fence rises in each of them.

Lock order: the session row, then the turn row. What a finish depends on (the inbox) is read in a statement that comes
after the one that locks the turn: a check in the same statement loses what arrives meanwhile.
"""

from __future__ import annotations

from shared.store.statements import named

LOCK_OWN = named(
    "lock_own",
    "update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning fence",
    "sessions_pkey",
)
LOCK_TURN = named(
    "lock_turn",
    "select id, status, cancel_requested_at, parent, parked_on from turns where id = %(turn)s for update",
    "turns_pkey",
)

# Nothing may stay unread in the inbox: a steer that arrived before the turn ended goes on with it. But a child's report
# wants an answer, and housekeeping gives none; and what is asked of the transcript has a turn of its own.
FINISH = named(
    "finish",
    """
with s as (
  update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s
    and not exists (
      select 1 from inbox i where i.session = %(session)s and i.folded_into is null
        and (i.kind <> 'input' or i.turn = %(turn)s) and i.kind not in ('rewind', 'restore', 'compact')
        and (i.kind <> 'child' or not exists (select 1 from turns h where h.id = %(turn)s and h.class = 'chore'))
    )
  returning id, fence
), t as (
  update turns set status = %(status)s, holder = null, finished_at = clock_now(), answer = %(answer)s,
    error_code = %(error_code)s, error_text = %(error_text)s, fence = s.fence
  from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
  returning turns.id
), r as (
  update tool_runs set status = 'cancelled', finished_at = clock_now(), fence = s.fence
  from s, t where tool_runs.turn = t.id and tool_runs.status = 'asked'
  returning 1
)
select s.fence, (select count(*) from r) as runs from s, t
""",
    "turns_pkey",
    "inbox_waiting|inbox_unread",
)

PARK = named(
    "park",
    """
with s as (
  update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s returning id, fence
)
update turns set status = 'parked', holder = null, parked_on = %(reason)s, parked_at = clock_now(),
  wake_at = clock_now() + %(wait_s)s * interval '1 second', fence = s.fence,
  out_since = case when %(out)s::bool then coalesce(turns.out_since, clock_now()) end
from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
returning s.fence, turns.wake_at
""",
    "turns_pkey",
)

# A turn that was handed back (drained, or to let another go first) has cost nothing and is no attempt.
REQUEUE = named(
    "requeue",
    """
with s as (
  update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s returning id, fence
)
update turns set status = 'queued', holder = null, attempts = greatest(attempts - 1, 0), fence = s.fence,
  queued_at = clock_now()
from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
returning s.fence, turns.class
""",
    "turns_pkey",
)

# --- taken away: by the sweep, from a holder that is dead -------------------------------------------------------------

HELD_BY = named(
    "held_by",
    """
select id, session from turns where holder = %(holder)s and status = 'running' order by seq limit %(limit)s
""",
    "turns_held",
)
LOCK_SESSION_SKIP = named(
    "lock_session_skip",
    "select fence from sessions where id = %(session)s for no key update skip locked",
    "sessions_pkey",
)
# Read again in a later statement, under the lock: the dead holder may have finished it, and a live one may have it now.
HELD_STILL = named(
    "held_still",
    """
select id, attempts, last_tool, cancel_requested_at, class from turns
where id = %(turn)s and holder = %(holder)s and status = 'running' for update
""",
    "turns_pkey|turns_held",
)
TAKE_AWAY = named(
    "take_away",
    """
with lost as (
  select coalesce(sum(reserved_usd), 0) as usd, count(*) as calls,
    count(*) filter (where purpose = 'main') as steps
  from calls where turn = %(turn)s and status = 'reserved'
), s as (
  update sessions set fence = sessions.fence + 1, spent_usd = sessions.spent_usd + lost.usd,
    reserved_usd = greatest(sessions.reserved_usd - lost.usd, 0)
  from lost where sessions.id = %(session)s
  returning sessions.id, sessions.fence, lost.usd, lost.steps
), c as (
  update calls set status = 'lost', ended_at = clock_now(), cost_usd = calls.reserved_usd, cost_assumed = true,
    rate_source = 'assumed: the reservation of a lost call', refund = 'lost_call', fence = s.fence
  from s where calls.turn = %(turn)s and calls.status = 'reserved'
  returning calls.id
), t as (
  update turns set status = %(status)s, holder = null, takeovers = takeovers + 1, fence = s.fence,
    refunds = turns.refunds + s.steps::int, spent_usd = turns.spent_usd + s.usd,
    reserved_usd = greatest(turns.reserved_usd - s.usd, 0),
    finished_at = case when %(status)s = 'queued' then null else clock_now() end,
    error_code = %(error_code)s, error_text = %(error_text)s
  from s where turns.id = %(turn)s and (turns.status = 'running') is true
  returning turns.id
), r as (
  update tool_runs set finished_at = clock_now(), fence = s.fence,
    status = case when tool_runs.status = 'started' and repeat <> 'repeatable' then 'unknown' else 'cancelled' end
  from s, t where %(status)s <> 'queued' and tool_runs.turn = t.id
    and tool_runs.status in ('asked', 'approved', 'started')
  returning 1
)
select s.fence, (select count(*) from c) as lost_calls, (select count(*) from r) as open_runs from s, t
""",
    "calls_one_reserved_a_turn",
)

# Of a turn that is over with this: each open call gets its result, so that the transcript ends in what the provider
# accepts. After `take_away`, under the fence that it raised.
ANSWER_LEFT = named(
    "answer_left",
    """
insert into messages (session, turn, step, ordinal, author, role, content, fence)
select %(session)s, %(turn)s, x.step, x.ordinal, 'tool', 'user', x.content, %(fence)s
from unnest(%(m_step)s::int[], %(m_ordinal)s::int[], %(m_content)s::text[])
  with ordinality as x(step, ordinal, content, n)
order by x.n
""",
)

# --- from parked -----------------------------------------------------------------------------------------------------

DUE_TO_WAKE = named(
    "due_to_wake",
    """
select id from turns where status = 'parked' and wake_at <= clock_now() order by wake_at limit %(limit)s
""",
    "turns_to_wake",
)
# The deadline stands still while a turn is parked.
WAKE = named(
    "wake",
    """
update turns set status = 'queued', parked_on = null, wake_at = null, parked_at = null,
  deadline_at = deadline_at + (clock_now() - parked_at), queued_at = clock_now()
where id = %(turn)s and status = 'parked' and wake_at <= clock_now()
returning id, class
""",
    "turns_pkey|turns_to_wake",
)

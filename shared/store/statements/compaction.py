"""A compaction on the session's row: whether one may be tried, that one was begun, and what came of it.

Lock order: the session row first, as in every statement of a holder. Times are the database's (`clock_now()`): the
five minutes of the breaker and the summariser's rest go on whatever worker has the turn.
"""

from __future__ import annotations

from shared.store.statements import named

# What the holder does not carry from claim to claim, and its clock; no row where the fence is another's. `fits`: a bill
# has been seen since the last attempt, and the calibration stands, which a bill over the threshold would have cleared.
STATE = named(
    "compaction_state",
    """
select clock.now, s.compacted_at, s.compact_last, s.summary_after, s.summary_failures,
  s.ineffective_strikes, s.fallback_streak, s.verdict_due, s.breaker_blocked_at,
  s.baseline_billed is not null and coalesce((
    select k.created_at from calls k where k.session = s.id and k.purpose = 'main' and k.status = 'settled'
      and k.input_tokens is not null
    order by k.seq desc limit 1
  ) > s.compacted_at, false) as fits
from sessions s, clock_now() as clock(now) where s.id = %(session)s and s.fence = %(fence)s
""",
    "sessions_pkey",
    "calls_of_session",
)

# The first evaluation that finds the breaker shut says since when, and is told once.
SHUT = named(
    "compaction_shut",
    """
with s as (
  select id, fence, breaker_blocked_at from sessions where id = %(session)s and fence = %(fence)s for no key update
), r as (
  insert into reductions (session, turn, step, decision, cause, arithmetic, tokens_before, tokens_after, first_edit,
    fence)
  select s.id, %(turn)s, %(step)s, 'blocked', %(cause)s, %(arithmetic)s, %(tokens_before)s, null, null, s.fence
  from s where s.breaker_blocked_at is null
)
update sessions set breaker_blocked_at = coalesce(sessions.breaker_blocked_at, clock_now())
from s where sessions.id = s.id
returning sessions.breaker_blocked_at, s.breaker_blocked_at is null as fresh
""",
    "sessions_pkey",
)

# Before anything else is done: a worker that dies at it leaves behind that it was tried, and a probe its counters.
BEGIN = named(
    "compaction_begin",
    """
update sessions set compacted_at = clock_now(), compact_last = 'open', breaker_blocked_at = null,
  ineffective_strikes = %(ineffective_strikes)s, fallback_streak = %(fallback_streak)s
where id = %(session)s and fence = %(fence)s
returning compacted_at
""",
    "sessions_pkey",
)

# Nothing was left out: nothing could be, or the model failed where nothing pressed. The verdict is due all the same:
# the next bill says whether that was a failure.
NOTHING = named(
    "compaction_nothing",
    """
with r as (
  insert into reductions (session, turn, step, decision, cause, arithmetic, tokens_before, tokens_after, first_edit,
    fence)
  select id, %(turn)s, %(step)s, 'skipped', %(cause)s, %(arithmetic)s, %(tokens_before)s, %(tokens_before)s, null, fence
  from sessions where id = %(session)s and fence = %(fence)s
)
update sessions set compact_last = 'nothing', verdict_due = true,
  fallback_streak = fallback_streak + %(failed)s::int, summary_failures = summary_failures + %(failed)s::int,
  summary_after = case when %(rest_s)s::float8 > 0 then clock_now() + %(rest_s)s::float8 * interval '1 second'
    else summary_after end
where id = %(session)s and fence = %(fence)s
returning fallback_streak
""",
    "sessions_pkey",
)
# Behind a lost reply: BEGIN left `open`, and nobody else has the fence.
NOTHING_STANDS = named(
    "compaction_nothing_stands",
    "select fallback_streak from sessions where id = %(session)s and fence = %(fence)s and compact_last = 'nothing'",
    "sessions_pkey",
)

# The summary, and the prompt built anew where it is another now, begin the next epoch together: what is remembered of
# the last request (chain, breakpoint) was of the one before. The calibration stays: it says how this one is counted.
COMMIT = named(
    "compaction_commit",
    """
with p as (
  insert into prefixes (digest, system_text, stable_length, context_length, tools_text)
  select %(digest)s, %(system_text)s, %(stable_length)s, %(context_length)s, %(tools_text)s
  from sessions where id = %(session)s and fence = %(fence)s and prefix is distinct from %(digest)s
  on conflict (digest) do nothing
), e as (
  insert into edits (session, kind, first, last, kept, text, cause, tokens_before, tokens_after, fence)
  select id, 'summary', %(first)s, %(last)s, %(kept)s::bigint[], %(text)s, %(cause)s, %(tokens_before)s,
    %(tokens_after)s, fence
  from sessions where id = %(session)s and fence = %(fence)s
  returning id
), x as (
  insert into edits (session, kind, prefix, cause, fence)
  select s.id, 'prefix', %(digest)s, %(cause)s, s.fence from sessions s, e
  where s.id = %(session)s and s.fence = %(fence)s and s.prefix is distinct from %(digest)s
  returning id
), r as (
  insert into reductions (session, turn, step, decision, cause, arithmetic, tokens_before, tokens_after, first_edit,
    fence)
  select s.id, %(turn)s, %(step)s, %(decision)s, %(cause)s, %(arithmetic)s, %(tokens_before)s, %(tokens_after)s, e.id,
    s.fence
  from sessions s, e where s.id = %(session)s and s.fence = %(fence)s
)
update sessions set prefix = %(digest)s, last_edit = greatest(e.id, (select id from x)),
  chain_blocks = null, chain_digest = null, last_breakpoint_message = null, meter = 0, compact_meter = 0,
  junk_tokens = 0, regrow_to = %(regrow_to)s, verdict_due = true, compact_last = %(compact_last)s,
  fallback_streak = case %(compact_last)s when 'summary' then 0 when 'fallback' then sessions.fallback_streak + 1
    else sessions.fallback_streak end,
  summary_failures = case when %(compact_last)s = 'summary' then 0
    else sessions.summary_failures + (%(rest_s)s::float8 > 0)::int end,
  summary_after = case when %(compact_last)s = 'summary' then null
    when %(rest_s)s::float8 > 0 then clock_now() + %(rest_s)s::float8 * interval '1 second'
    else sessions.summary_after end
from e where sessions.id = %(session)s and sessions.fence = %(fence)s
returning e.id as edit, sessions.last_edit, sessions.fallback_streak
""",
    "sessions_pkey",
)

# A COMMIT whose reply was lost: whether its edit is there.
COMMITTED = named(
    "compaction_committed",
    """
select e.id as edit, s.last_edit, s.fallback_streak from sessions s
join edits e on e.session = s.id and e.kind = 'summary' and e.id > %(last_edit)s
where s.id = %(session)s and s.last_edit > %(last_edit)s order by e.id limit 1
""",
    "sessions_pkey",
    "edits_of_session|edits_pkey",
)

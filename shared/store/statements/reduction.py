"""What a session's reductions are decided by, as columns of its row, and how a decision is written.

Lock order: the session row first, as in every statement of a holder.
"""

from __future__ import annotations

from shared.store.statements import named

CONTEXT_COLUMNS = """s.ttl, s.called_at, s.prefix_warm_until, s.meter, s.compact_meter, s.junk_tokens, s.wrote_tokens,
  s.hold_5m, s.hold_1h, s.regrow_to, s.warm_pings, s.keep_warm, s.ineffective_strikes, s.fallback_streak,
  s.verdict_due, s.breaker_blocked_at"""
"""Of `sessions` under the name `s`: what workers.reduction.state.of_row reads."""

CONTEXT_SET = """ttl = %(ttl)s, meter = %(meter)s, compact_meter = %(compact_meter)s, junk_tokens = %(junk_tokens)s,
    wrote_tokens = %(wrote_tokens)s, hold_5m = %(hold_5m)s, hold_1h = %(hold_1h)s, regrow_to = %(regrow_to)s,
    warm_pings = %(warm_pings)s, ineffective_strikes = %(ineffective_strikes)s, fallback_streak = %(fallback_streak)s,
    verdict_due = %(verdict_due)s, breaker_blocked_at = %(breaker_blocked_at)s"""
"""Of an `update sessions set …` by its holder: what Context.params gives. When the session was called is T1's alone."""

_OF_SESSION = " from sessions s where s.id = %(session)s"
CONTEXT = named("context", "select " + CONTEXT_COLUMNS + _OF_SESSION, "sessions_pkey")

# All stubs of one prune as edits, the decision with its arithmetic, and what the session's row knows from here on: the
# digest chain begins anew, the pinned breakpoint is the one that still stands. The edits' trigger takes the session's
# row lock and holds the fence against it before the row is changed. Without a stub nothing is written.
_STUBS = """
with e as (
  insert into edits (session, kind, first, block, text, cause, tokens_before, tokens_after, fence)
  select s.id, 'stub', x.message, x.block, x.line, %(cause)s, x.before, x.after, s.fence
  from sessions s, unnest(%(e_message)s::bigint[], %(e_block)s::int[], %(e_line)s::text[], %(e_before)s::bigint[],
    %(e_after)s::bigint[]) with ordinality as x(message, block, line, before, after, n)
  where s.id = %(session)s and s.fence = %(fence)s
  order by x.n
  returning id
), n as (select min(id) as first, max(id) as last from e
), r as (
  insert into reductions (session, turn, step, decision, cause, arithmetic, tokens_before, tokens_after, first_edit,
    fence)
  select s.id, %(turn)s, %(step)s, 'prune', %(cause)s, %(arithmetic)s, %(before)s, %(after)s, n.first, s.fence
  from sessions s, n where s.id = %(session)s and s.fence = %(fence)s and n.first is not null
  returning 1
)
update sessions set last_edit = n.last, chain_blocks = null, chain_digest = null,
  last_breakpoint_message = %(pinned)s,
  """
_STUBBED = """
from n where sessions.id = %(session)s and sessions.fence = %(fence)s and n.last is not null
returning sessions.last_edit
"""
PRUNE = named("prune", _STUBS + CONTEXT_SET + _STUBBED, "sessions_pkey")
# A COMMIT whose reply was lost: whether its edits are there. Nobody else writes edits while the fence is the holder's.
PRUNED = named(
    "pruned", "select last_edit from sessions where id = %(session)s and last_edit <> %(known)s", "sessions_pkey"
)

# A decision that edits nothing: another time to live, or why nothing is done.
_NOTED = """
with s as (
  update sessions set """
_NOTE = """
  where id = %(session)s and fence = %(fence)s
  returning id, fence
)
insert into reductions (session, turn, step, decision, cause, arithmetic, tokens_before, fence)
select s.id, %(turn)s, %(step)s, %(decision)s, %(cause)s, %(arithmetic)s, %(before)s, s.fence from s
returning id
"""
NOTE = named("note", _NOTED + CONTEXT_SET + _NOTE, "sessions_pkey")

# What a person wants kept and the provider is about to forget: only while pings are cheaper than writing it anew, and
# only where nobody is at it or about to be. A turn that was admitted for it and came to nothing is not admitted again.
# Of a conversation that is with another model than its session's own, that one has nothing.
_DUE = """
s.keep_warm and s.prefix_warm_until > clock_now()
  and s.prefix_warm_until <= clock_now() + %(early_s)s * interval '1 second'
  and s.warm_pings < s.most_pings and s.chain_blocks is not null
  and coalesce(s.spoke = s.provider || ':' || s.model, true)
  and not exists (select 1 from turns t where t.session = s.id and (t.status in ('queued', 'running', 'parked')
    or t.class = 'chore' and t.created_at >= s.prefix_warm_until - %(early_s)s * interval '1 second'))
"""
_TO_WARM = "select s.id as session, s.owner from sessions s where "
_SOONEST = "order by s.prefix_warm_until limit %(limit)s"
TO_WARM = named("to_warm", _TO_WARM + _DUE + _SOONEST, "sessions_to_warm", "turns_of_session")
STILL_TO_WARM = named("still_to_warm", _TO_WARM + _DUE + "and s.id = %(session)s", "sessions_pkey|sessions_to_warm")

# Large chats that nobody has spoken in for so long, of the last day: who stays away for longer is not waited for. One
# turn for each silence, whatever came of it. 20,000 is the least that the setting may be, and what the index holds.
_SILENT = """
select s.id as session, s.owner from sessions s
where s.called_at <= clock_now() - %(idle_s)s::float8 * interval '1 second'
  and s.called_at > clock_now() - %(idle_s)s::float8 * interval '1 second' - interval '1 day'
  and s.baseline_billed >= 20000 and s.baseline_billed >= %(tokens)s and s.kind = 'chat'
  and not exists (select 1 from turns t where t.session = s.id and (t.status in ('queued', 'running', 'parked')
    or t.class = 'chore' and t.created_at >= s.called_at + %(idle_s)s::float8 * interval '1 second'))
"""
_LONGEST = "order by s.called_at limit %(limit)s"
FALLEN_SILENT = named("fallen_silent", _SILENT + _LONGEST, "sessions_silent", "turns_of_session")
STILL_SILENT = named("still_silent", _SILENT + "and s.id = %(session)s", "sessions_pkey|sessions_silent")

# A person's choice, with its line in the audit where it is another than it was. The session's row is locked. What was
# pinged for so far is left as it is: choosing anew is no new entry at the provider.
KEEP_WARM = named(
    "keep_warm",
    """
with x as (
  update sessions set keep_warm = %(wanted)s::boolean
  where id = %(session)s and keep_warm <> %(wanted)s::boolean
  returning id
)
insert into audit (principal, action, subject, detail)
select %(principal)s, case when %(wanted)s::boolean then 'session.keep_warm' else 'session.let_cool' end, id::text, ''
from x
""",
    "sessions_pkey",
)

# The model of a session. What of the last one's is of no use to it is looked at by the next claim (sessions.spoke).
SPEAK_TO = named(
    "speak_to",
    """
with x as (
  update sessions set provider = coalesce(%(provider)s::text, provider), model = %(model)s::text
  where id = %(session)s and (provider, model) <> (coalesce(%(provider)s::text, provider), %(model)s::text)
  returning id, provider, model
)
insert into audit (principal, action, subject, detail)
select %(principal)s, 'session.model', id::text, provider || ':' || model from x
""",
    "sessions_pkey",
)

# The breakpoints of the first call of an epoch: those that stand on rows older than it are named by their ids.
EPOCH_MARKS = named(
    "epoch_marks",
    """
select c.marks from calls c
where c.session = %(session)s and c.last_edit = %(last_edit)s and c.purpose = 'main' and c.status = 'settled'
order by c.seq limit 1
""",
    "calls_of_session",
)

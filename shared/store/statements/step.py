"""The holder's writes inside a turn: reserve (T2 and the first fold), record (T1), start and finish one tool run.

Lock order: the session row first (`update sessions … where id and fence`), then everything else of that session.
Every branch selects from that update; no row means LeaseLost. Each is one statement and one transaction.

`(… = …) is true` where a row is found by its key: the same condition, for which the planner takes no index. On tables
that were small when a connection planned, it walks every running turn of the house, or every call of the session.
"""

from __future__ import annotations

from typing import LiteralString

from shared.store.statements import named
from shared.store.statements.reduction import CONTEXT_SET

# T2 of one step and the reservation of the next call. Messages get their ids in ordinal order from the shared
# sequence, so that row id is the transcript's order. `max_message` null means: no new message, the call stands on
# what was there. A call row is inserted only where `call` is given (a chore, or a fold before a failure, has none).
# What fits was decided under the caps that are given: they must still be those of the rows, and the shared ones those
# of that version.
# `c_apart`: a call that stands on that prefix and on nothing of the conversation.
# `alone`: nothing may be waiting in the inbox; then what does is read and folded first, and only then a read is needed.
# The rows come back as they stand, so that what goes out is projected from them and from nothing else.
# The clock is asked once, for every row that carries the time: it is a function with a query of its own.
_GATHER: LiteralString = """
with s as (
  update sessions set reserved_usd = reserved_usd + %(reserve)s::numeric
  from clock_now() as clock(now)
  where id = %(session)s and fence = %(fence)s
    and (cap_usd is null or %(reserve)s::numeric = 0 or spent_usd + reserved_usd + %(reserve)s::numeric <= cap_usd)
    and (%(call)s::uuid is null or (cap_usd is not distinct from %(session_cap)s::numeric and exists (
      select 1 from turns c where c.id = %(turn)s and c.cap_usd is not distinct from %(turn_cap)s::numeric)))
    and (%(call)s::uuid is null or %(budget_version)s::bigint = (select version from budget_rules))
    and (not %(alone)s::bool or not exists (
      select 1 from inbox i where i.session = %(session)s and i.folded_into is null
        and (i.kind <> 'input' or i.turn = %(turn)s)
        and (i.kind not in ('rewind', 'restore', 'compact') or i.kind = 'compact'
          and exists (select 1 from turns o where o.id = i.turn and o.status = 'queued'))
    ))
  returning id, fence, last_edit, prefix, clock.now
), t as (
  update turns set steps = steps + %(count_step)s::int, reserved_usd = turns.reserved_usd + %(reserve)s::numeric,
    fence = s.fence, warned = turns.warned || %(warned)s::jsonb, last_tool = coalesce(%(last_tool)s, turns.last_tool),
    short_until = case when %(call)s::uuid is null then turns.short_until end
  from s where turns.id = %(turn)s and (turns.status = 'running') is true
  returning turns.id, turns.cancel_requested_at
), m as (
  insert into messages (session, turn, step, ordinal, author, role, content, sent, stable_prefix_len, fence, created_at)
  select s.id, t.id, x.step, x.ordinal, x.author, x.role, x.content, x.sent, x.stable, s.fence, s.now
  from s, t, unnest(%(m_step)s::int[], %(m_ordinal)s::int[], %(m_author)s::text[], %(m_role)s::text[],
    %(m_content)s::text[], %(m_sent)s::text[], %(m_stable)s::int[])
    with ordinality as x(step, ordinal, author, role, content, sent, stable, n)
  order by x.n
  returning id, turn::text, step, ordinal, author, role, content, sent, blocks, stable_prefix_len
), r as (
  update tool_runs set status = x.status, result = x.result, is_error = x.is_error, finished_at = s.now, fence = s.fence
  from s, t, unnest(%(r_step)s::int[], %(r_ordinal)s::int[], %(r_status)s::text[], %(r_result)s::text[],
    %(r_error)s::bool[]) as x(step, ordinal, status, result, is_error)
  where tool_runs.turn = t.id and tool_runs.step = any(%(r_step)s::int[])
    and tool_runs.step = x.step and tool_runs.ordinal = x.ordinal and tool_runs.status in ('asked', 'started')
  returning 1
)"""
# A result of which the transcript has a preview is kept whole, in the same transaction; sent twice, it inserts once.
_KEEP: LiteralString = """, a as (
  insert into artifacts (id, session, turn, step, ordinal, cause, characters, came, body)
  select x.id, s.id, t.id, x.step, x.ordinal, 'tool_result', x.characters, x.came, convert_to(x.body, 'UTF8')
  from s, t, unnest(%(a_id)s::uuid[], %(a_step)s::int[], %(a_ordinal)s::int[], %(a_characters)s::int[],
    %(a_came)s::text[], %(a_body)s::text[]) as x(id, step, ordinal, characters, came, body)
  on conflict do nothing
  returning 1
)"""
_CALL: LiteralString = """, f as (
  update inbox set folded_into = m.id, folded_at = s.now
  from s, m, unnest(%(i_id)s::bigint[], %(i_step)s::int[], %(i_ordinal)s::int[]) as x(id, step, ordinal)
  where x.step = m.step and x.ordinal = m.ordinal and inbox.id = x.id and inbox.folded_into is null
  returning 1
), c as (
  insert into calls (id, turn, session, step, purpose, provider, model, last_message, last_edit, prefix, params, marks,
    tail, bare, block_count, digest, estimate, projected, max_tokens, reserved_usd, holder, fence, created_at)
  select %(call)s::uuid, t.id, s.id, %(c_step)s, %(c_purpose)s, %(c_provider)s, %(c_model)s,
    case when %(c_apart)s::text is not null then 0
      else coalesce((select max(id) from m), (select max(id) from messages where session = s.id)) end,
    case when %(c_apart)s::text is not null then 0 else s.last_edit end, coalesce(%(c_apart)s::text, s.prefix),
    %(c_params)s, %(c_marks)s,
    %(c_tail)s, %(c_bare)s, %(c_blocks)s, %(c_digest)s, %(c_estimate)s, %(c_projected)s, %(c_max_tokens)s,
    %(reserve)s::numeric, %(holder)s, s.fence, s.now
  from s, t where %(call)s::uuid is not null
  returning id
)
select s.fence, s.now, t.cancel_requested_at, m.* from s cross join t left join m on true order by m.id
"""
RESERVE = named("reserve", _GATHER + _CALL, "sessions_pkey", "turns_pkey")
RESERVE_KEEPING = named("reserve_keeping", _GATHER + _KEEP + _CALL, "sessions_pkey", "turns_pkey")

# T1: the assistant's message, its tool runs, the call's bill, calibration and the chain. It can land once: the call
# must still be `reserved`. `spent` is what is booked against the caps (the bill, or what must be assumed). The provider
# keeps what it read from when the call went out, which is when it was reserved. `clear`: the bill was at the threshold
# or over it, so what was projected from the last one is not believed any more.
_SETTLE = """
with s as (
  update sessions set
    reserved_usd = greatest(sessions.reserved_usd - k.reserved_usd, 0),
    spent_usd = sessions.spent_usd + %(spent)s::numeric,
    cost_unknown = sessions.cost_unknown or %(unknown)s,
    baseline_estimate = case when %(anchor)s then k.estimate when not %(clear)s then sessions.baseline_estimate end,
    baseline_billed = case when %(anchor)s then %(billed)s when not %(clear)s then sessions.baseline_billed end,
    last_breakpoint_message = case when %(chain)s then coalesce(%(end_message)s, sessions.last_breakpoint_message)
      else sessions.last_breakpoint_message end,
    chain_blocks = case when %(chain)s then k.block_count else sessions.chain_blocks end,
    chain_digest = case when %(chain)s then k.digest else sessions.chain_digest end,
    spoke = case when %(chain)s then k.provider || ':' || k.model else sessions.spoke end,
    called_at = case when %(chain)s then k.created_at else sessions.called_at end,
    prefix_warm_until = case when %(chain)s or %(ping)s then k.created_at + %(warm_s)s * interval '1 second'
      else sessions.prefix_warm_until end,
    most_pings = case when %(chain)s then %(most_pings)s else sessions.most_pings end,
    """
_RECORD = """
  from calls k, clock_now() as clock(now)
  where sessions.id = %(session)s and sessions.fence = %(fence)s
    and k.id = %(call)s and (k.session = sessions.id) is true and (k.status = 'reserved') is true
  returning sessions.id, sessions.fence, sessions.called_at, sessions.prefix_warm_until, k.reserved_usd as reserved,
    clock.now
), c as (
  update calls set status = %(status)s, ended_at = s.now, fence = s.fence,
    input_tokens = %(input)s, output_tokens = %(output)s, cache_read_tokens = %(cache_read)s,
    cache_write_5m_tokens = %(cache_write_5m)s, cache_write_1h_tokens = %(cache_write_1h)s,
    reasoning_tokens = %(reasoning)s, cost_usd = %(cost)s, cost_assumed = %(assumed)s, rate_source = %(rate_source)s,
    refund = %(refund)s, error_code = %(error_code)s, error_text = %(error_text)s, request_id = %(request_id)s,
    stop_reason = %(stop_reason)s, first_token_ms = %(first_token_ms)s
  from s where calls.id = %(call)s
  returning calls.id
), t as (
  update turns set reserved_usd = greatest(turns.reserved_usd - s.reserved, 0),
    spent_usd = turns.spent_usd + %(spent)s::numeric, cost_unknown = turns.cost_unknown or %(unknown)s,
    step = turns.step + %(step_done)s::int, attempts = case when %(step_done)s::int > 0 then 0 else turns.attempts end,
    refunds = turns.refunds + (%(refund)s::text is not null)::int, fence = s.fence,
    out_since = case when %(status)s::text <> 'settled' then turns.out_since end
  from s where turns.id = %(turn)s and (turns.status = 'running') is true
  returning turns.id, turns.cancel_requested_at
), m as (
  insert into messages (session, turn, step, ordinal, author, role, content, blocks, cut, fence, created_at)
  select s.id, t.id, %(step)s, 0, 'model', 'assistant', %(content)s, %(blocks)s, %(cut)s, s.fence, s.now
  from s, t where %(content)s::text is not null
  returning id, turn::text, step, ordinal, author, role, content, sent, blocks, stable_prefix_len
), r as (
  insert into tool_runs (turn, step, ordinal, session, call_id, tool, arguments, digest, repeat, status, holder,
    started_at, may_run_until, fence)
  select t.id, %(step)s, x.ordinal, s.id, x.call_id, x.tool, x.arguments, x.digest, x.repeat, x.status, %(holder)s,
    case when x.status = 'started' then s.now end,
    case when x.status = 'started' then clock_timestamp() + x.may_run_s * interval '1 second' end, s.fence
  from s, t, unnest(%(r_ordinal)s::int[], %(r_call_id)s::text[], %(r_tool)s::text[], %(r_arguments)s::text[],
    %(r_digest)s::text[], %(r_repeat)s::text[], %(r_status)s::text[], %(r_may_run_s)s::float8[])
    as x(ordinal, call_id, tool, arguments, digest, repeat, status, may_run_s)
  returning 1
)
select s.fence, s.now, s.called_at, s.prefix_warm_until, t.cancel_requested_at, m.*
from s cross join t cross join c left join m on true
"""
RECORD = named("record", _SETTLE + CONTEXT_SET + _RECORD, "calls_pkey", "sessions_pkey", "turns_pkey")

# In a sequential batch each later run is `started` by itself, before it runs: else a crash calls it unknown though it
# never began.
START_RUN = named(
    "start_run",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence)
update tool_runs set status = 'started', started_at = clock_now(), holder = %(holder)s, fence = s.fence,
  may_run_until = clock_timestamp() + %(may_run_s)s * interval '1 second'
from s where tool_runs.turn = %(turn)s and tool_runs.step = %(step)s and tool_runs.ordinal = %(ordinal)s
  and tool_runs.status in ('asked', 'approved', 'started')
returning tool_runs.ordinal
""",
    "tool_runs_pkey",
)

# A run that may not be repeated commits its own result when it ends, so that a crash in a neighbour does not cost it.
_FINISH: LiteralString = """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
t as (
  update tool_runs set status = %(status)s, result = %(result)s, is_error = %(is_error)s, finished_at = clock_now(),
    fence = s.fence
  from s where tool_runs.turn = %(turn)s and tool_runs.step = %(step)s and tool_runs.ordinal = %(ordinal)s
    and tool_runs.status in ('started', %(status)s)
  returning tool_runs.ordinal, tool_runs.turn as id
)"""
_FINISHED: LiteralString = " select t.ordinal from t"
FINISH_RUN = named("finish_run", _FINISH + _FINISHED, "tool_runs_pkey")
FINISH_RUN_KEEPING = named("finish_run_keeping", _FINISH + _KEEP + _FINISHED, "tool_runs_pkey")

# A session's first prefix, or a changed one: content-addressed, shared, and an edit of kind `prefix`.
_SAVE = """
with p as (
  insert into prefixes (digest, system_text, stable_length, context_length, tools_text)
  values (%(digest)s, %(system_text)s, %(stable_length)s, %(context_length)s, %(tools_text)s)
  on conflict (digest) do nothing
), """
_ADOPT = """e as (
  insert into edits (session, kind, prefix, cause, fence)
  select id, 'prefix', %(digest)s, %(cause)s, fence from sessions
  where id = %(session)s and fence = %(fence)s
  returning id, session
)
update sessions set prefix = %(digest)s, last_edit = e.id, chain_blocks = null, chain_digest = null,
  last_breakpoint_message = null, prefix_warm_until = null
from e where sessions.id = e.session and sessions.fence = %(fence)s
returning sessions.last_edit
"""
PREFIX_FIRST = named("prefix_first", _SAVE + _ADOPT, "sessions_pkey")
PREFIX_ADOPT = named("prefix_adopt", "with " + _ADOPT, "sessions_pkey")
# A turn's calls go to another model from here on. The conversation's cache and what was signed in it are the other
# one's: the past is sent as an epoch of its own, and what is known of sizes is forgotten.
SWITCH = named(
    "switch",
    """
with e as (
  insert into edits (session, kind, prefix, cause, fence)
  select id, 'prefix', prefix, %(cause)s, fence from sessions
  where id = %(session)s and fence = %(fence)s
  returning id, session
), s as (
  update sessions set last_edit = e.id, chain_blocks = null, chain_digest = null, last_breakpoint_message = null,
    prefix_warm_until = null, baseline_estimate = null, baseline_billed = null, spoke = %(to)s
  from e where sessions.id = e.session and sessions.fence = %(fence)s
  returning sessions.id, sessions.last_edit, sessions.fence
)
update turns set provider = %(provider)s, model = %(model)s, fence = s.fence
from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
returning s.last_edit
""",
    "sessions_pkey",
    "turns_pkey",
)
# The same where nothing was said yet, or where the conversation is there already.
SPEAK = named(
    "speak",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence)
update turns set provider = %(provider)s, model = %(model)s, fence = s.fence
from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
returning s.fence
""",
    "sessions_pkey",
    "turns_pkey",
)
# A COMMIT whose reply was lost: whether the session has the prefix.
PREFIX_STANDS = named(
    "prefix_stands", "select last_edit from sessions where id = %(session)s and prefix = %(digest)s", "sessions_pkey"
)

# Who asks whether a write of the holder landed waits for the old connection's transaction to end first.
HOLD = named("hold", "select fence from sessions where id = %(session)s for no key update", "sessions_pkey")
CALL_STATUS = named("call_status", "select status, holder from calls where id = %(call)s", "calls_pkey")

"""What a person asks of a transcript as a whole (rewind, restore, compact): asked by a row of the inbox, carried out by
the holder of the housekeeping turn that the row is tied to.

Lock order: whoever asks takes the session's gate; the holder begins with its session row.
"""

from __future__ import annotations

from shared.store.statements import named
from shared.store.statements.reduction import CONTEXT_SET

# One statement, so one moment: a turn that moves between `queued` and `running` is in one of the two. Housekeeping says
# nothing to the person, and what is asked now comes after it; but not while a rewind or a restore is still to be done.
BUSY = named(
    "busy",
    """
with live as (
  select id, status, class from turns where session = %(session)s and status in ('running', 'parked')
  union all
  select id, status, class from turns where session = %(session)s and status = 'queued'
)
select id, status from live where class <> 'chore' or exists (
  select 1 from inbox i where i.turn = live.id and i.folded_into is null and i.kind in ('rewind', 'restore')
) limit 1
""",
    "turns_one_holder",
    "turns_queue_of_session",
    "inbox_of_turn|inbox_waiting|inbox_unread",
)

# Where a rewind to this turn would cut, and whether what stands there was taken back already.
CUT = named(
    "cut",
    """
select t.id, t.status, c.first, exists (
    select 1 from standing_rewinds w where w.session = t.session and c.first between w.first and w.last
  ) as rewound
from turns t cross join lateral (select min(m.id) as first from messages m where m.turn = t.id) c
where t.id = %(turn)s and t.session = %(session)s
""",
    "turns_pkey",
    "messages_step_key",
)
# A child in the background outlives the turn that delegated it: it is at work, or its report is not read yet.
CHILD_ALIVE = named(
    "child_alive",
    """
with gone as (
  select distinct m.turn as id from messages m where m.session = %(session)s and m.id >= %(first)s
)
select c.id, c.status from gone join turns c on c.parent = gone.id and c.status in ('queued', 'running', 'parked')
union all
select c.id, c.status from inbox i join turns c on c.id = i.turn join gone on gone.id = c.parent
where i.session = %(session)s and i.kind = 'child' and i.folded_into is null
limit 1
""",
    "messages_of_session",
    "turns_live_children|turns_of_parent",
    "inbox_waiting|inbox_unread",
)
# The newest rewind that is in force, or the one that is named; `restored` where it was undone already.
UNDOABLE = named(
    "undoable",
    """
select e.id, e.first, e.last, exists (
    select 1 from edits r where r.session = e.session and r.kind = 'restore' and r.first = e.id
  ) as restored
from edits e
where e.session = %(session)s and e.kind = 'rewind' and (e.id = %(rewind)s or %(rewind)s::bigint is null)
order by restored, e.id desc limit 1
""",
    "edits_taken_back|edits_of_session",
)
NEWEST_MESSAGE = named(
    "newest_message",
    "select max(id) as id from messages where session = %(session)s and id < %(before)s",
    "messages_of_session",
)
COMPACT_WAITING = named(
    "compact_waiting",
    """
select i.id, i.turn from inbox i join turns t on t.id = i.turn
where i.session = %(session)s and i.kind = 'compact' and i.folded_into is null and t.status in ('queued', 'running')
order by i.id limit 1
""",
    "inbox_waiting|inbox_unread",
    "turns_pkey",
)
AUDIT = named(
    "audit_session",
    """
insert into audit (principal, action, subject, detail)
values (%(principal)s, %(action)s, %(session)s, %(detail)s)
""",
)
REQUEST = named(
    "request",
    """
select i.id, i.kind, i.payload, i.edit, i.outcome, i.created_at, i.folded_at, i.turn, t.status as turn_status,
  t.error_code, t.error_text, p.name as author, e.first, e.last, e.tokens_before, e.tokens_after
from inbox i join turns t on t.id = i.turn join principals p on p.id = i.author left join edits e on e.id = i.edit
where i.id = %(request)s and i.session = %(session)s and i.kind in ('rewind', 'restore', 'compact')
""",
    "inbox_pkey",
)

# --- what a rewind does not undo -------------------------------------------------------------------------------------

# The turns of a range that stands, and whatever they delegated, at any depth.
_TREE = """
with recursive gone as (
  select distinct m.turn as id from messages m
  where m.session = %(session)s and m.id between %(first)s and %(last)s and not exists (
    select 1 from standing_rewinds w where w.session = m.session and m.id between w.first and w.last
  )
), tree as (
  select id from gone
  union
  select c.id from turns c join tree p on c.parent = p.id
)
"""
# Runs that were not reads and that ran, or may have: `tool_runs.repeat` says which a tool is.
EFFECTS = named(
    "effects",
    _TREE
    + """
select r.turn, r.step, r.ordinal, r.session, r.tool, left(r.arguments, 300) as arguments, r.status,
  coalesce(r.started_at, r.finished_at) as at
from tree join tool_runs r on r.turn = tree.id
where r.repeat <> 'repeatable' and r.status in ('started', 'done', 'failed', 'unknown')
order by at, r.turn, r.step, r.ordinal limit %(limit)s
""",
    "messages_of_session",
    "tool_runs_pkey",
)
REMEMBERED = named(
    "remembered",
    _TREE
    + """
select v.scope, v.revision, v.action, left(v.taken, 300) as taken, left(v.put, 300) as put, v.created_at as at
from tree join memory_revisions v on v.turn = tree.id order by v.created_at, v.scope, v.revision limit %(limit)s
""",
    "messages_of_session",
    "memory_run_key",
)

# --- by the holder --------------------------------------------------------------------------------------------------

# Calls whose request may be a prefix of what stands: the newest that were answered before the cut, with what they
# billed. What one wrote to the provider's cache was read last by the call after it.
SENT = named(
    "sent",
    """
select c.last_message, c.marks, c.block_count, c.digest, c.estimate, c.model,
  c.input_tokens + c.cache_read_tokens + c.cache_write_5m_tokens + c.cache_write_1h_tokens as billed,
  coalesce((select n.created_at from calls n where n.session = c.session and n.seq > c.seq and n.purpose = 'main'
    and n.status = 'settled' order by n.seq limit 1), c.created_at) as read_at
from calls c
where c.session = %(session)s and c.purpose = 'main' and c.status = 'settled' and c.last_message < %(cut)s
order by c.seq desc limit %(limit)s
""",
    "calls_of_session",
)
# The edit, what the session's row knows of its cache from here on, and the request's end, in one. Sent twice it finds
# the request folded.
_EDIT = """
with e as (
  insert into edits (session, kind, first, last, cause, tokens_before, tokens_after, fence)
  select s.id, %(kind)s, %(first)s, %(last)s, 'asked', %(tokens_before)s, %(tokens_after)s, s.fence
  from sessions s join inbox i on i.session = s.id
  where s.id = %(session)s and s.fence = %(fence)s and i.id = %(request)s and i.folded_into is null
  returning id, session
), i as (
  update inbox set folded_into = (select max(m.id) from messages m where m.session = inbox.session),
    folded_at = clock_now(), edit = e.id, outcome = %(outcome)s
  from e where inbox.id = %(request)s
  returning inbox.id
)
update sessions set last_edit = e.id, chain_blocks = %(chain_blocks)s, chain_digest = %(chain_digest)s,
  last_breakpoint_message = %(pinned)s, baseline_estimate = %(baseline_estimate)s,
  baseline_billed = %(baseline_billed)s,
  prefix_warm_until = case when %(read_at)s::timestamptz is not null
    then least(prefix_warm_until, %(read_at)s::timestamptz + %(warm_s)s * interval '1 second') end, """
_EDITED = """
from e, i where sessions.id = e.session and sessions.fence = %(fence)s
returning sessions.last_edit, sessions.prefix_warm_until, clock_now() as now
"""
TRAVEL = named("travel", _EDIT + CONTEXT_SET + _EDITED, "sessions_pkey", "inbox_pkey")
FOLD_REQUEST = named(
    "fold_request",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id)
update inbox set folded_into = (select max(m.id) from messages m where m.session = s.id), folded_at = clock_now(),
  edit = %(edit)s, outcome = %(outcome)s
from s where inbox.id = %(request)s and inbox.folded_into is null
returning inbox.id
""",
    "sessions_pkey",
    "inbox_pkey|inbox_waiting|inbox_unread",
)
FOLDED = named(
    "folded", "select id, edit as last_edit from inbox where id = %(request)s and folded_into is not null", "inbox_pkey"
)
# A compaction that stands, though its worker was lost before it said so.
COMPACTED_SINCE = named(
    "compacted_since",
    """
select id, first, last, tokens_before, tokens_after from edits
where session = %(session)s and kind = 'summary' and id > %(request)s and cause = 'asked' order by id limit 1
""",
    "edits_of_session",
)

"""What a turn waits for: approvals, questions, children. How the reason is made, how it ends, and how the sleeper is
woken.

Reason and sleeper meet on the turn's row. Whoever parks, decides, answers or ends a child first locks that row, and
reads the reason in a later statement: a check in the same statement loses what arrives meanwhile, even under the lock.
Lock order: the holder's own session row, then its turn row; whoever ends a child locks the parent's turn row first.
"""

from __future__ import annotations

from typing import LiteralString

from shared.store.statements import named

# --- the reasons, made by the holder ---------------------------------------------------------------------------------

# Requests of one batch get ids in call order. Sent twice, it inserts once.
REQUEST_APPROVALS = named(
    "request_approvals",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
a as (
  insert into approvals (id, turn, session, step, ordinal, tool, digest, role, four_eyes, requested_by, expires_at,
    rule, why, patterns, fence)
  select x.id, %(turn)s, s.id, %(step)s, x.ordinal, x.tool, r.digest, x.role, x.four_eyes, %(requested_by)s,
    clock_now() + %(limit_s)s * interval '1 second', x.rule, x.why, string_to_array(x.patterns, ' '), s.fence
  from s, unnest(%(a_id)s::uuid[], %(a_ordinal)s::int[], %(a_tool)s::text[], %(a_role)s::text[],
    %(a_four_eyes)s::bool[], %(a_rule)s::text[], %(a_why)s::text[], %(a_patterns)s::text[])
    with ordinality as x(id, ordinal, tool, role, four_eyes, rule, why, patterns, n)
  join tool_runs r on r.turn = %(turn)s and r.step = %(step)s and r.ordinal = x.ordinal
  order by x.n
  on conflict (turn, step, ordinal) do nothing
  returning id, ordinal
)
select s.fence, a.id, a.ordinal from s left join a on true
""",
    "sessions_pkey",
    "tool_runs_pkey",
)
ASK_PERSON = named(
    "ask_person",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
q as (
  insert into questions (id, turn, session, step, ordinal, question, expires_at, fence)
  select %(question_id)s, %(turn)s, s.id, %(step)s, %(ordinal)s, %(question)s,
    clock_now() + %(limit_s)s * interval '1 second', s.fence
  from s
  on conflict (turn, step, ordinal) do nothing
  returning id
)
select s.fence, q.id from s left join q on true
""",
    "sessions_pkey",
)
# Session, turn, first input of each child, the parent's count of those that it waits for, and what is promised to them:
# their caps count as reserved in the parent's until they are over. The ids are derived from the run, so that a spawn
# whose reply was lost, or that is asked for again by the next holder, makes nothing twice.
SPAWN = named(
    "spawn",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning sessions.*),
x as (
  select * from unnest(%(c_session)s::uuid[], %(c_turn)s::uuid[], %(c_index)s::int[], %(c_workspace)s::text[],
    %(c_title)s::text[], %(c_payload)s::text[], %(c_tools)s::text[], %(c_shared)s::text[])
    with ordinality as x(session, turn, index, workspace, title, payload, tools, shared, n)
), cs as (
  insert into sessions (id, owner, audience, kind, root, depth, title, profile, provider, model, workspace, folder,
    cap_usd, tools)
  select x.session, s.owner, s.audience, 'child', coalesce(s.root, s.id), s.depth + 1, x.title, s.profile, s.provider,
    s.model, x.workspace, s.folder, %(cap_usd)s, string_to_array(x.tools, ',')
  from s, x order by x.n
  on conflict (id) do nothing
  returning id
), ct as (
  insert into turns (id, session, class, requested_by, contributors, admit_key, deadline_s, max_steps, cap_usd, parent,
    parent_step, parent_ordinal, child_index, background, job, shared_key)
  select x.turn, x.session, 'child', t.requested_by, t.contributors, clock_now() + %(aging_s)s * interval '1 second',
    %(deadline_s)s, %(max_steps)s, %(cap_usd)s, t.id, %(step)s, %(ordinal)s, x.index, %(background)s,
    t.job, x.shared
  from s, x, cs, turns t where cs.id = x.session and t.id = %(turn)s order by x.n
  on conflict (id) do nothing
  returning id, session
), ci as (
  insert into inbox (session, turn, dedupe_key, kind, author, payload)
  select ct.session, ct.id, 'input:' || ct.id, 'input', %(requested_by)s, x.payload
  from ct join x on x.turn = ct.id
  on conflict (dedupe_key) do nothing
  returning 1
), people as (
  insert into session_people (session, principal)
  select ct.session, p.principal from ct, s join session_people p on p.session = s.id
  on conflict do nothing
  returning 1
), parent as (
  update turns set
    children_open = turns.children_open + case when %(background)s then 0 else (select count(*) from ct)::int end,
    children_promised_usd = turns.children_promised_usd
      + (select count(*) from ct) * coalesce(%(cap_usd)s::numeric, 0)
  from s where turns.id = %(turn)s and (turns.status = 'running') is true
  returning turns.id
), r as (
  update tool_runs set status = 'started', started_at = coalesce(started_at, clock_now()), holder = %(holder)s,
    may_run_until = coalesce(may_run_until, clock_now() + %(limit_s)s * interval '1 second'), fence = s.fence
  from s where tool_runs.turn = %(turn)s and tool_runs.step = %(step)s and tool_runs.ordinal = %(ordinal)s
    and tool_runs.status in ('asked', 'approved', 'started')
  returning 1
)
select s.fence, (select count(*) from ct)::int as made,
  (select count(*) from ci) + (select count(*) from people) as rows
from s
""",
    "sessions_pkey",
    "turns_pkey",
    "tool_runs_pkey",
)

# --- what has come of them -------------------------------------------------------------------------------------------

APPROVALS_OF_STEP = named(
    "approvals_of_step",
    """
select a.ordinal, a.id, a.status, a.note, a.digest, p.name as decided_by, a.expires_at <= clock_now() as over,
  a.status <> 'pending' and not a.told as untold
from approvals a left join principals p on p.id = a.decided_by
where a.turn = %(turn)s and a.step = %(step)s order by a.ordinal
""",
    "approvals_run_key",
)
# What has been decided is told on the turn's stream by its holder, whose fence the stream knows; marked, so that it is
# told once, whatever dies.
TELL_DECIDED = named(
    "tell_decided",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
a as (
  update approvals set told = true from s
  where approvals.turn = %(turn)s and approvals.step = %(step)s and approvals.status <> 'pending'
    and not approvals.told
  returning approvals.id, approvals.ordinal, approvals.tool, approvals.status, approvals.note, approvals.decided_by
)
select s.fence, a.id, a.ordinal, a.tool, a.status, a.note, p.name as decided_by
from s left join a on true left join principals p on p.id = a.decided_by order by a.ordinal
""",
    "sessions_pkey",
    "approvals_run_key",
)
QUESTIONS_OF_STEP = named(
    "questions_of_step",
    """
select q.ordinal, q.id, q.status, q.answer, p.name as answered_by, q.expires_at <= clock_now() as over
from questions q left join principals p on p.id = q.answered_by
where q.turn = %(turn)s and q.step = %(step)s order by q.ordinal
""",
    "questions_run_key",
)
CHILDREN_OF_RUN = named(
    "children_of_run",
    """
select c.id, c.session, c.child_index, c.status, c.answer, c.error_code, c.error_text, c.steps - c.refunds as steps,
  c.spent_usd + c.children_usd as usd, c.cost_unknown or c.children_unknown as unknown, s.workspace, s.title,
  p.children_usd as all_usd, p.children_promised_usd as promised_usd,
  r.may_run_until <= clock_now() as over
from turns c join sessions s on s.id = c.session join turns p on p.id = c.parent
join tool_runs r on r.turn = c.parent and r.step = c.parent_step and r.ordinal = c.parent_ordinal
where c.parent = %(turn)s and c.parent_step = %(step)s and c.parent_ordinal = %(ordinal)s
order by c.child_index
""",
    "turns_of_parent",
)
# What did not fit into a child's summary, whole. Sent twice, it inserts once.
KEEP_REPORT = named(
    "keep_report",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
a as (
  insert into artifacts (id, session, turn, cause, body)
  select %(artifact)s, s.id, %(turn)s, 'child_report', %(body)s from s
  on conflict (id) do nothing
  returning 1
)
select s.fence, (select count(*) from a)::int as made from s
""",
    "sessions_pkey",
)
# The limit of a wait is over, the turn is stopped, or a person spoke while it was about to sleep: what is still open is
# closed by its holder.
_APPROVALS: LiteralString = "approvals_pending|approvals_run_key"
_QUESTIONS: LiteralString = "questions_open|questions_run_key"
_CLOSE: LiteralString = """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
x as (
  update """
_CLOSED: LiteralString = """ and (not %(due)s or expires_at <= clock_now())
  returning 1
)
select s.fence, (select count(*) from x) as closed from s
"""
_APPROVAL: LiteralString = """approvals set status = %(status)s, decided_at = clock_now(), note = %(note)s
  from s where turn = %(turn)s and status = 'pending'"""
_QUESTION: LiteralString = """questions set status = %(status)s, answered_at = clock_now(), answer = %(note)s
  from s where turn = %(turn)s and status = 'open'"""
CLOSE_APPROVALS = named("close_approvals", _CLOSE + _APPROVAL + _CLOSED, _APPROVALS)
CLOSE_QUESTIONS = named("close_questions", _CLOSE + _QUESTION + _CLOSED, _QUESTIONS)

# The turn is over: nobody may decide or answer any more. In the transaction that ends it.
VOID_APPROVALS = named(
    "void_approvals",
    "update approvals set status = 'void', decided_at = clock_now() where turn = %(turn)s and status = 'pending'",
    _APPROVALS,
)
VOID_QUESTIONS = named(
    "void_questions",
    "update questions set status = 'void', answered_at = clock_now() where turn = %(turn)s and status = 'open'",
    _QUESTIONS,
)

# --- to sleep --------------------------------------------------------------------------------------------------------

# Under the locks of `lock_own` and `lock_turn`, in a later statement: the reason must still stand, nobody may have
# cancelled, and no person may have spoken (what they said ends a wait for a person). To sleep is no failed attempt.
# Children are counted from their rows: a count that was wrong is right again, and nobody waits for none.
PARK_ON = named(
    "park_on",
    """
with s as (
  update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s
    and case %(reason)s::text
      when 'approval' then exists (select 1 from approvals a where a.turn = %(turn)s and a.status = 'pending')
      when 'clarify' then exists (select 1 from questions q where q.turn = %(turn)s and q.status = 'open')
      when 'children' then exists (select 1 from turns c where c.parent = %(turn)s and not c.background
        and c.status in ('queued', 'running', 'parked'))
      when 'money' then not has_room(%(turn)s)
      else true end
    and not exists (select 1 from turns c where c.id = %(turn)s and c.cancel_requested_at is not null)
    and (%(reason)s::text not in ('approval', 'clarify') or not exists (
      select 1 from inbox i where i.session = %(session)s and i.folded_into is null and i.kind = 'steer'
    ))
  returning id, fence
)
update turns set status = 'parked', holder = null, parked_on = %(reason)s, parked_at = clock_now(),
  wake_at = case when %(reason)s::text = 'money' then short_until
    else clock_now() + %(wait_s)s::float8 * interval '1 second' end, attempts = greatest(attempts - 1, 0),
  fence = s.fence, children_open = (
    select count(*) from turns c where c.parent = %(turn)s and not c.background
      and c.status in ('queued', 'running', 'parked')
  )
from s where turns.id = %(turn)s and turns.session = s.id and (turns.status = 'running') is true
returning s.fence, turns.wake_at
""",
    "turns_pkey",
    "inbox_waiting|inbox_unread",
)

# --- decided, answered, ended ----------------------------------------------------------------------------------------

FIND_APPROVAL = named(
    "find_approval",
    """
select a.id, a.turn, a.session, a.tool, a.role, a.four_eyes, a.requested_by, a.status, a.note, a.rule,
  cardinality(a.patterns) > 0 as grantable,
  a.expires_at <= clock_now() as over, p.name as decided_by
from approvals a left join principals p on p.id = a.decided_by where a.id = %(approval)s
""",
    "approvals_pkey",
)
# One decision: the status is compared, under the turn's lock. Decision, grant and audit stand or fall together. A grant
# holds for whoever asked for the turn, for what this call was asked about, and nothing else.
DECIDE = named(
    "decide",
    """
with d as (
  update approvals set status = %(status)s, decided_at = clock_now(), decided_by = %(principal)s, note = %(note)s,
    scope = case when %(status)s::text = 'approved' then %(scope)s::text end
  where id = %(approval)s and status = 'pending' and (expires_at is null or expires_at > clock_now())
  returning id, turn, session, tool, digest, status, scope, rule, patterns, requested_by
), g as (
  insert into grants (id, scope, principal, session, patterns, approval, granted_by, note)
  select %(grant)s, scope, requested_by, case when scope = 'session' then session end, patterns, id, %(principal)s,
    %(note)s
  from d where scope in ('session', 'always')
  returning 1
), told as (
  insert into audit (principal, action, subject, detail)
  select %(principal)s, 'approval.' || status, id::text, format('turn %%s, tool %%s, digest %%s, rule %%s, scope %%s',
    turn, tool, digest, rule, coalesce(scope, '-'))
  from d
)
select id, turn from d
""",
    "approvals_pkey",
)
DENY_ALL = named(
    "deny_all",
    """
with d as (
  update approvals set status = 'denied', decided_at = clock_now(), decided_by = %(principal)s, note = %(note)s
  where turn = %(turn)s and status = 'pending' returning id, turn, tool, digest
), told as (
  insert into audit (principal, action, subject, detail)
  select %(principal)s, 'approval.denied', id::text,
    format('turn %%s, tool %%s, digest %%s, by a message', turn, tool, digest)
  from d
)
select id from d
""",
    "approvals_pending|approvals_run_key",
)
ANSWER_ALL = named(
    "answer_all",
    """
update questions set status = 'answered', answered_at = clock_now(), answered_by = %(principal)s, answer = %(answer)s
where turn = %(turn)s and status = 'open' returning id
""",
    "questions_open|questions_run_key",
)
# The child is over in this transaction: the parent has one less to wait for, its money counts as the parent's, and what
# it did not spend of its promise is free again, but for what it has itself promised to children that live on.
CHILD_OVER = named(
    "child_over",
    """
update turns p set children_open = greatest(p.children_open - case when c.background then 0 else 1 end, 0),
  children_usd = p.children_usd + c.spent_usd + c.children_usd,
  children_promised_usd
    = greatest(p.children_promised_usd - coalesce(c.cap_usd, 0) + c.children_promised_usd, 0),
  children_unknown = p.children_unknown or c.cost_unknown or c.children_unknown
from turns c where c.id = %(turn)s and p.id = %(parent)s
returning p.id, p.session, p.status, p.children_open, c.background
""",
    "turns_pkey",
)

# --- awake -----------------------------------------------------------------------------------------------------------

# Whether what the turn sleeps for stands, so that it must sleep on: to be followed by how its children are counted.
_SLEEPS_ON: LiteralString = """case t.parked_on
    when 'approval' then exists (select 1 from approvals a where a.turn = t.id and a.status = 'pending')
    when 'clarify' then exists (select 1 from questions q where q.turn = t.id and q.status = 'open')
    when 'money' then not has_room(t.id)
    when 'children' then """
_COUNTED: LiteralString = _SLEEPS_ON + "t.children_open > 0 else true end"
_LIVE_CHILDREN: LiteralString = """exists (select 1 from turns c where c.parent = t.id and not c.background
      and c.status in ('queued', 'running', 'parked'))
    else true end"""
_BY_ROWS: LiteralString = _SLEEPS_ON + _LIVE_CHILDREN
_AWAKE: LiteralString = """
update turns t set status = 'queued', parked_on = null, wake_at = null, parked_at = null, short_until = null,
  short_of = null,
  deadline_at = deadline_at + (clock_now() - parked_at), queued_at = clock_now()"""
_ASLEEP: LiteralString = """
where t.id = %(turn)s and t.status = 'parked' and not """
_WOKEN: LiteralString = """
returning id, class
"""
# After `lock_turn`, in a later statement. Says nothing where the turn does not sleep or its reason stands.
WAKE_MET = named("wake_met", _AWAKE + _ASLEEP + _COUNTED + _WOKEN, "turns_pkey|turns_to_wake")
# The sweep derives each reason anew from its own rows, not from what the waker counted. Room under a cap that others
# share is told by nobody, so it is looked for apart (`short_of_budget`) and no wake was missed.
_SLEEPERS: LiteralString = """
select t.id, t.parked_on from turns t
where t.status = 'parked' and t.parked_on in ('approval', 'clarify', 'children', 'money')
  and t.parked_at < clock_now() - interval '5 seconds' and t.short_of is null
  and not """
_OLDEST: LiteralString = """
order by t.parked_at limit %(limit)s
"""
SLEEPS_FOR_NOTHING = named("sleeps_for_nothing", _SLEEPERS + _BY_ROWS + _OLDEST, "turns_to_wake|turns_one_holder")
_RECOUNTED: LiteralString = """,
  children_open = case when parked_on = 'children' then 0 else children_open end"""
_SAME_REASON: LiteralString = " and t.parked_on = %(reason)s"
WAKE_MISSED = named(
    "wake_missed", _AWAKE + _RECOUNTED + _ASLEEP + _BY_ROWS + _SAME_REASON + _WOKEN, "turns_pkey|turns_to_wake"
)

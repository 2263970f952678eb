"""Who may run: pick and claim in one transaction, under one advisory transaction lock (late binding).

Lock order: the advisory lock, the session row (skipped when locked), the turn row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict
from uuid import UUID

from psycopg.rows import DictRow

from shared.providers.credentials import credentials, owned
from shared.settings import Settings
from shared.store.pool import Connection
from shared.store.statements import named, one
from shared.store.statements.reduction import CONTEXT_COLUMNS
from shared.values import TurnClass

CLAIM_LOCK = 7_231_001

# SKIP LOCKED alone would run 10 where 4 are allowed: this lock is what holds a limit.
CLAIM_LOCK_TAKE = named("claim_lock_take", "select pg_advisory_xact_lock(%(key)s)")

# What may not run now, worked out once a pick: what an admin has stopped, who is disabled, whose limit is reached (a
# limit that is null is none, and then nothing is counted for it), and which shared prefixes a leader is about to warm.
# A gate stands only while its leader runs under the claim that made it one, so death, cancel, park and end free it
# without a write. Of a provider, turns whose person or job has keys of their own there (`own`) fill those, `pools`, and
# all others the team's, `providers`. `elsewhere`: turns of which a live worker other than `boot` has something running
# in the background.
_CLOSED = """
held as materialized (
  select r.requested_by, r.job, r.parent, s.profile, coalesce(r.provider, s.provider) as provider,
    coalesce(r.job, case when r.class <> 'chore' or s.audience = 'private' and s.owner = r.requested_by
      then r.requested_by end) as owner
  from turns r left join sessions s on s.id = r.session
    and (%(profile_limit)s::int is not null or %(provider_limit)s::int is not null
      or cardinality(%(provider_names)s::text[]) > 0)
  where r.status = 'running' and r.holder is not null
), own as materialized (
  select x.provider, coalesce(p.id, j.id) as owner, x.provider || ' ' || coalesce(p.id, j.id) as pool, x.most
  from unnest(%(own_providers)s::text[], %(own_kinds)s::text[], %(own_names)s::text[], %(own_mosts)s::int[])
    as x(provider, kind, name, most)
  left join principals p on x.kind = 'people' and p.name = x.name and p.kind = 'person'
  left join jobs j on x.kind = 'jobs' and j.name = x.name
  where coalesce(p.id, j.id) is not null
), stopped as materialized (
  select x.scope, x.subject from stops x where x.lifted_at is null
), closed as materialized (
  select exists (select 1 from stopped where scope = 'fleet') as fleet,
    array(select subject from stopped where scope = 'person')
      || array(select p.id::text from principals p where p.disabled_at is not null) as persons,
    array(select subject from stopped where scope = 'job') || array(
      select job::text from held where job is not null group by job having count(*) >= %(job_limit)s::int) as jobs,
    array(select subject from stopped where scope = 'profile') || array(
      select profile from held where profile is not null group by profile
      having count(*) >= %(profile_limit)s::int) as profiles,
    array(select h.provider from held h where h.provider is not null and not exists (
        select 1 from own o where o.provider = h.provider and o.owner = h.owner) group by h.provider
      having count(*) >= least(%(provider_limit)s::int, (
        select x.most from unnest(%(provider_names)s::text[], %(provider_mosts)s::int[]) as x(name, most)
        where x.name = h.provider))) as providers,
    array(select o.pool from own o) as owned,
    array(select o.pool from own o where o.most <= (
      select count(*) from held h where h.provider = o.provider and h.owner = o.owner)) as pools,
    array(select parent from held where parent is not null group by parent
      having count(*) >= %(parent_limit)s::int) as parents,
    array(select p.key from shared_prefixes p join turns l on l.id = p.leader
      where p.leader_deadline > statement_timestamp() and l.status = 'running' and l.claim = p.leader_claim) as gated,
    array(select b.turn from backgrounds b join workers w on w.boot_id = b.boot_id
      where b.status = 'running' and b.may_run_until > statement_timestamp() and b.boot_id <> %(boot)s::uuid
        and w.lease_until > statement_timestamp() and w.stopped_at is null and not w.draining) as elsewhere
)"""

# A loose index scan over principals with a lateral top-n each (hot-path.md: 2.4 ms at 100,000 queued). Of a session
# only the first queued turn is considered, and none while one of it runs or is parked. A person's own running turns
# push the next ones back, so that nobody's flood starves another. A turn whose background lives on another worker is
# left to that one for ten seconds, and then to anybody: what runs there can be asked for nowhere else.
_CANDIDATES = """, busy(principal, held) as (
  select requested_by, count(*) from held group by requested_by
), candidates as (
  select c.id, c.session, c.admit_key + coalesce(b.held, 0) * interval '30 seconds' as rank, c.seq
  from waiting w
  left join busy b on b.principal = w.principal
  cross join lateral (
    select t.id, t.session, t.admit_key, t.seq from turns t
    where t.status = 'queued' and t.requested_by = w.principal and """
_MAY_RUN = """
      and (t.step = 0 or t.id <> all ((select elsewhere from closed)::uuid[])
        or t.queued_at < clock_now() - interval '10 seconds')
      and (t.shared_key is null or t.step > 0 or t.shared_key <> all ((select gated from closed)::text[]))
      and (t.parent is null or t.parent <> all ((select parents from closed)::uuid[]))
      and (t.job is null or t.job::text <> all ((select jobs from closed)::text[]))
      and ((select cardinality(profiles) + cardinality(providers) + cardinality(pools) = 0 from closed) or (
        select q.profile <> all ((select profiles from closed)::text[])
          and case when coalesce(t.provider, q.provider) || ' ' || coalesce(t.job, case
              when t.class <> 'chore' or q.audience = 'private' and q.owner = t.requested_by then t.requested_by end)
              = any ((select owned from closed)::text[])
            then coalesce(t.provider, q.provider) || ' ' || coalesce(t.job, t.requested_by)
              <> all ((select pools from closed)::text[])
            else coalesce(t.provider, q.provider) <> all ((select providers from closed)::text[]) end
        from sessions q where q.id = t.session))
      and not exists (select 1 from turns r where r.session = t.session and r.status in ('running', 'parked'))
      and not exists (select 1 from turns e where e.session = t.session and e.status = 'queued' and e.seq < t.seq)"""
_IN_ORDER = """
    order by t.admit_key, t.id"""
_OPEN = """
  where w.principal is not null and coalesce(b.held, 0) < %(principal_limit)s
    and not (select fleet from closed) and w.principal::text <> all ((select persons from closed)::text[])"""
_BEST = """
)
select c.id, c.session from candidates c join sessions s on s.id = c.session
order by c.rank, c.seq limit 1
for no key update of s skip locked
"""
_FIRST = _MAY_RUN + _IN_ORDER + " limit 1\n  ) c" + _OPEN + _BEST
_FIRST_FEW = _MAY_RUN + _IN_ORDER + " limit 8\n  ) c" + _OPEN + _BEST
_EVERY = """
with recursive waiting(principal) as (
  (select requested_by from turns where status = 'queued' order by requested_by limit 1)
  union all
  select (select t.requested_by from turns t
          where t.status = 'queued' and t.requested_by > w.principal order by t.requested_by limit 1)
  from waiting w where w.principal is not null
), """
# A slot that is kept for questions must not walk through everybody's flood to find that there are none.
_QUESTIONS = """
with recursive waiting(principal) as (
  (select requested_by from turns where status = 'queued' and class = 'interactive' order by requested_by limit 1)
  union all
  select (select t.requested_by from turns t where t.status = 'queued' and t.class = 'interactive'
          and t.requested_by > w.principal order by t.requested_by limit 1)
  from waiting w where w.principal is not null
), """
_OF_CLASSES = "t.class = any(%(classes)s::text[])"
_OF_QUESTIONS = "t.class = 'interactive'"
_USES = ("turns_admission", "turns_one_holder", "backgrounds_running")

# The first of each principal is all that an order among them needs.
CLAIM_PICK = named("claim_pick", _EVERY + _CLOSED + _CANDIDATES + _OF_CLASSES + _FIRST, *_USES)
# Where that finds nothing, the session of each first one may be locked at this moment (someone is writing to it).
CLAIM_PICK_DEEP = named("claim_pick_deep", _EVERY + _CLOSED + _CANDIDATES + _OF_CLASSES + _FIRST_FEW, *_USES)
PICK_QUESTION = named(
    "pick_question", _QUESTIONS + _CLOSED + _CANDIDATES + _OF_QUESTIONS + _FIRST,
    "turns_questions", "turns_one_holder", "backgrounds_running",
)  # fmt: skip
PICK_QUESTION_DEEP = named(
    "pick_question_deep", _QUESTIONS + _CLOSED + _CANDIDATES + _OF_QUESTIONS + _FIRST_FEW,
    "turns_questions", "turns_one_holder", "backgrounds_running",
)  # fmt: skip

# What the sweep rings for: sessions that the claim would find at this moment, by class, so that nobody is rung in vain
# for what an admin stopped or what waits for its leader. Of the front of each principal's queue, 2,000 rows in all.
# `truncated`: more may run than was seen, since all that was looked at of a queue may not. One row at least.
_HEADS = """, busy(principal, held) as (
  select requested_by, count(*) from held group by requested_by
), heads as (
  select f.*, w.principal from waiting w left join busy b on b.principal = w.principal
  cross join lateral (
    select t.id, t.session, t.class, t.shared_key, t.step, t.parent, t.job, t.seq, t.queued_at, t.provider,
      t.requested_by
    from turns t
    where t.status = 'queued' and t.requested_by = w.principal order by t.admit_key, t.id limit 500
  ) f"""
_OPEN_HEADS = """ limit 2000
), open as (
  select t.session, t.class, t.principal from heads t
  where true"""
_BY_CLASS = """
)
select o.class, count(o.session)::int as sessions, x.truncated from (
  select (select count(*) = 2000 from heads) or exists (
    select 1 from heads h group by h.principal
    having count(*) = 500 and not exists (select 1 from open o where o.principal = h.principal)
  ) as truncated
) x left join open o on true
group by o.class, x.truncated
"""
WAITING_CLASSES = named(
    "waiting_classes", _EVERY + _CLOSED + _HEADS + _OPEN + _OPEN_HEADS + _MAY_RUN + _BY_CLASS,
    "turns_admission", "turns_one_holder", "backgrounds_running",
)  # fmt: skip


class Limits(TypedDict):
    """How many turns may run at once: of a principal, a job, a profile, on any one provider, on the providers named,
    and of the children of one parent. None is no limit. `own_…`, one place each: on the keys that a person or a job has
    of their own at a provider. `boot`: the worker that would run it; None where any might."""

    principal_limit: int
    job_limit: int | None
    profile_limit: int | None
    provider_limit: int | None
    parent_limit: int | None
    provider_names: list[str]
    provider_mosts: list[int]
    own_providers: list[str]
    own_kinds: list[str]
    own_names: list[str]
    own_mosts: list[int]
    boot: UUID | None


NO_LIMITS: Limits = {
    "principal_limit": 1_000_000, "job_limit": None, "profile_limit": None, "provider_limit": None,
    "parent_limit": None, "provider_names": [], "provider_mosts": [],
    "own_providers": [], "own_kinds": [], "own_names": [], "own_mosts": [], "boot": None,
}  # fmt: skip


def limits(settings: Settings, boot: UUID | None = None, environ: Mapping[str, str] = os.environ) -> Limits:
    """What holds among all that claim, however many do so at once; and who asks. Of a provider, what each of its keys
    may have at once, times its keys: the team's for the team, and somebody's own for their turns."""
    told = {
        name: one.concurrency * max(1, len(credentials(settings, name, environ)))
        for name, one in settings.providers.items()
        if one.concurrency is not None
    }
    return {
        "principal_limit": settings.principal_limit, "job_limit": settings.job_limit,
        "profile_limit": settings.profile_limit, "provider_limit": settings.provider_limit,
        "parent_limit": settings.parent_limit, "provider_names": list(told), "provider_mosts": list(told.values()),
        **_of_own_keys(settings), "boot": boot,
    }  # fmt: skip


class _OwnLimits(TypedDict):
    own_providers: list[str]
    own_kinds: list[str]
    own_names: list[str]
    own_mosts: list[int]


def _of_own_keys(settings: Settings) -> _OwnLimits:
    """Where nothing bounds a provider nobody's own keys are looked for either."""
    found: _OwnLimits = {"own_providers": [], "own_kinds": [], "own_names": [], "own_mosts": []}
    if settings.provider_limit is None and not any(one.concurrency for one in settings.providers.values()):
        return found
    for (provider, owner), count in owned(settings).items():
        told = settings.providers.get(provider)
        each = told.concurrency * count if told is not None and told.concurrency else None
        bounds = [one for one in (settings.provider_limit, each) if one is not None]
        if bounds:
            found["own_providers"].append(provider)
            found["own_kinds"].append(owner.kind)
            found["own_names"].append(owner.name)
            found["own_mosts"].append(min(bounds))
    return found


def pick(connection: Connection, classes: Sequence[TurnClass], limits: Limits) -> DictRow | None:
    """The turn to claim next, its session's row locked; None where nothing may run. Under the claim lock."""
    if list(classes) == [TurnClass.INTERACTIVE]:
        return one(connection, PICK_QUESTION, limits) or one(connection, PICK_QUESTION_DEEP, limits)
    values = {"classes": list(classes), **limits}
    return one(connection, CLAIM_PICK, values) or one(connection, CLAIM_PICK_DEEP, values)


# Whether any question waits at all: one look at an index, before a pick is worth its price.
QUESTION_WAITS = named(
    "question_waits",
    "select 1 as waits from turns where status = 'queued' and class = 'interactive' order by requested_by limit 1",
    "turns_questions",
)

# What the holder must know of its turn and session: both are its alone from the claim on. Housekeeping stands in the
# name of the session's owner; where others read along nobody says that they asked for it, so it has no person.
_TURN = """
select t.id as turn, t.session, t.fence, t.class, t.attempts, t.takeovers, t.requested_by, t.job,
  (select j.name from jobs j where j.id = t.job) as job_name,
  case when t.class <> 'chore' or s.audience = 'private' and s.owner = t.requested_by then (
    select p.name from principals p where p.id = t.requested_by and p.kind = 'person') end as asked_by,
  extract(epoch from clock_now() - t.queued_at)::float8 as waited_s,
  extract(epoch from t.deadline_at - clock_now())::float8 as seconds_left,
  t.step, t.steps, t.refunds, t.max_steps, t.warned, t.cap_usd as turn_cap, t.spent_usd as turn_spent,
  t.reserved_usd as turn_reserved,
  (select version from budget_rules) as budget_version, t.last_tool,
  t.children_usd, t.children_promised_usd, t.parent, t.shared_key,
  coalesce(t.short_until <= clock_now(), false) as money_late, s.kind, s.depth, s.tools,
  case when s.cap_usd is null then 0 else (
    select coalesce(sum(o.children_usd + o.children_promised_usd), 0) from turns o
    where o.session = s.id and o.id <> t.id) end as others_children_usd,
  (select json_object_agg(x.subject, x.id || ': ' || x.note) from stops x
   where x.scope = 'tool' and x.lifted_at is null) as stopped_tools,
  s.profile, coalesce(t.provider, s.provider) as provider, coalesce(t.model, s.model) as model,
  s.provider as primary_provider, s.model as primary_model, s.spoke,
  extract(epoch from clock_now() - t.out_since)::float8 as out_s, s.workspace, s.folder,
  s.cap_usd as session_cap, s.spent_usd as session_spent,
  s.reserved_usd as session_reserved, s.prefix, s.last_edit, s.baseline_estimate, s.baseline_billed,
  s.last_breakpoint_message, s.chain_blocks, s.chain_digest, s.created_at as session_started, clock_now() as now,
"""
_OPEN_CALLS = """,
  (select coalesce(max(ordinal) + 1, 0) from messages m where m.turn = t.id and m.step = t.step) as next_ordinal,
  (select count(*) from calls c where c.turn = t.id and c.step = t.step + 1 and c.status = 'failed'
   and c.purpose not in ('summary', 'title', 'probe') and c.provider = coalesce(t.provider, s.provider)
   and c.model = coalesce(t.model, s.model)) as failed_tries,
  (select case when c.status = 'failed' and c.refund is null then c.purpose end from calls c
   where c.turn = t.id and c.step = t.step + 1 and c.purpose not in ('summary', 'title', 'probe')
   order by c.seq desc limit 1) as failed_purpose
"""
_HELD = _TURN + CONTEXT_COLUMNS + _OPEN_CALLS

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

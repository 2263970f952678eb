"""What a run does beyond its own conversation: jobs that it makes for its person, a word to another conversation.

Lock order: the run's own session first, a job's row after it. A message locks the other session alone.
"""

from __future__ import annotations

from shared.store.statements import named

# A run's right to write, held for its transaction; who it acts for, and whether everyone whose words it carries may.
RUN_PLACE = named(
    "run_place",
    """
with s as (
  update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, audience, kind
)
select s.audience, s.kind, t.requested_by, t.cap_usd, p.kind as by_kind, (
  select bool_and(coalesce(v.role <> 'viewer' and v.disabled_at is null, false))
  from unnest(t.contributors || t.requested_by) as c(id) left join principals v on v.id = c.id
) as may_write
from s join turns t on t.id = %(turn)s join principals p on p.id = t.requested_by
""",
    "sessions_pkey",
    "turns_pkey",
    "principals_pkey",
)
JOB_ADD = named(
    "job_add",
    """
insert into jobs (id, name, owner, principal, cron, zone, prompt, tail, workspace, folder, profile, model, cap_usd,
  max_steps, deadline_s, audience, deliver_session, deliver_file, next_at)
values (%(id)s, %(name)s, %(owner)s, %(principal)s, %(cron)s, %(zone)s, %(prompt)s, %(tail)s, %(workspace)s, %(folder)s,
  %(profile)s, %(model)s, %(cap_usd)s, %(max_steps)s, %(deadline_s)s, %(audience)s, %(deliver_session)s,
  %(deliver_file)s, %(next_at)s)
""",
)
JOB_REMOVE = named(
    "job_remove",
    """
update jobs set removed_at = clock_now(), next_at = null, updated_at = clock_now(),
  name = left(name, 140) || ' (removed ' || id || ')'
where id = %(job)s and removed_at is null
""",
    "jobs_pkey",
)
JOB_BY_ID = named("job_by_id", "select name, removed_at from jobs where id = %(job)s", "jobs_pkey")
# Whose jobs a conversation may speak of: the team's, and its own person's where nobody else reads it. There are few.
JOBS_SEEN = named(
    "jobs_seen",
    """
select j.id, j.name, j.cron, j.zone, j.prompt, j.paused_at, j.next_at, j.owner = %(who)s as mine
from jobs j
where j.removed_at is null and (j.audience = 'team' or (%(alone)s and j.owner = %(who)s))
order by j.created_at desc, j.id limit %(limit)s
""",
)
JOB_NAMED = named(
    "job_named",
    """
select j.id, j.owner = %(who)s as mine from jobs j
where j.name = %(name)s and j.removed_at is null and (j.audience = 'team' or (%(alone)s and j.owner = %(who)s))
for no key update of j
""",
    "jobs_name_key",
)
JOBS_OWNED = named(
    "jobs_owned", "select count(*)::int as n from jobs where owner = %(who)s and removed_at is null"
)  # fmt: skip
# Who asks from where, and whether the other conversation is there for them; `fits`: nobody reads it who may not read
# this one. A child's is its parent's alone.
MESSAGE_TARGET = named(
    "message_target",
    """
select s.fence, n.requested_by, t.id, s.audience = 'team' or (t.audience <> 'team' and not exists (
    select 1 from (
      select t.owner as reader union all
      select p.principal from session_people p where p.session = t.id and t.audience = 'people'
    ) r
    where r.reader <> s.owner and not (s.audience = 'people' and exists (
      select 1 from session_people o where o.session = s.id and o.principal = r.reader)))) as fits,
  (select count(*)::int from (
    select 1 from inbox i where i.session = t.id and i.folded_into is null limit %(most)s) u) as unread
from sessions s
join turns n on n.id = %(turn)s
left join sessions t on t.id = %(target)s and t.kind <> 'child' and (
  t.owner = n.requested_by or t.audience = 'team' or (t.audience = 'people' and exists (
    select 1 from session_people v where v.session = t.id and v.principal = n.requested_by)))
where s.id = %(session)s
""",
    "sessions_pkey",
    "turns_pkey",
    "inbox_waiting|inbox_unread",
)

"""What an admin has stopped: rows that every pick reads (`admission`), that every worker's question reads (`holder`),
and whose trees are cancelled where the stop says so.

A stop stands until it is lifted, whatever restarts. Each change stands or falls with its line in the audit.
"""

from __future__ import annotations

from shared.store.statements import named

PLACE_STOP = named(
    "place_stop",
    """
with x as (
  insert into stops (id, scope, subject, cancel, note, placed_by)
  values (%(stop)s, %(scope)s, %(subject)s, %(cancel)s, %(note)s, %(principal)s)
  returning id, scope, subject, cancel, note
)
insert into audit (principal, action, subject, detail)
select %(principal)s, 'stop.placed', id::text, concat_ws(' ', scope, subject, case when cancel then 'cancel' end, note)
from x
""",
)
# Once: who lifts what was lifted already changes nothing and writes nothing.
LIFT_STOP = named(
    "lift_stop",
    """
with x as (
  update stops set lifted_at = clock_now(), lifted_by = %(principal)s where id = %(stop)s and lifted_at is null
  returning id, scope, subject
), told as (
  insert into audit (principal, action, subject, detail)
  select %(principal)s, 'stop.lifted', id::text, concat_ws(' ', scope, subject) from x
)
select id from x
""",
    "stops_pkey|stops_standing",
)
# What nobody will claim: queued turns of principals that were disabled; `person` narrows it to one.
OF_DISABLED = named(
    "of_disabled",
    """
select t.id from principals p join turns t on t.requested_by = p.id and t.status = 'queued'
where p.disabled_at is not null and (%(person)s::uuid is null or p.id = %(person)s)
order by t.parent is not null, t.seq limit %(limit)s
""",
    "principals_disabled|principals_pkey",
    "turns_admission",
)
# Live turns from before a standing stop that cancels, parents first; `stop` narrows it to one stop. A turn that was
# told to end already is its holder's to end.
DOOMED = named(
    "doomed",
    """
with x as materialized (
  select * from stops where lifted_at is null and cancel and (%(stop)s::uuid is null or id = %(stop)s)
), live as (
  select id, session, job, requested_by, parent, created_at, seq from turns
  where status = 'queued' and exists (select 1 from x)
  union all
  select id, session, job, requested_by, parent, created_at, seq from turns
  where status in ('running', 'parked') and cancel_requested_at is null and exists (select 1 from x)
)
select t.id, x.placed_by from live t join x on t.created_at <= x.created_at and (x.scope = 'fleet'
  or x.scope = 'person' and x.subject = t.requested_by::text or x.scope = 'job' and x.subject = t.job::text
  or x.scope = 'profile' and x.subject = (select s.profile from sessions s where s.id = t.session))
order by t.parent is not null, t.seq limit %(limit)s
""",
    "stops_standing|stops_pkey",
    "turns_one_holder",
)

"""What the holder reads at its claim, and what a process asks each second about the turns it holds."""

from __future__ import annotations

from shared.store.statements import named

# All of it is this holder's alone from the claim on, so a plain read is enough, in the claim's own transaction.
HELD = named(
    "held",
    """
select s.profile, s.provider, s.model, s.workspace, s.folder, s.cap_usd as session_cap, s.spent_usd as session_spent,
  s.reserved_usd as session_reserved, s.prefix, s.last_edit, s.baseline_estimate, s.baseline_billed,
  s.last_breakpoint_message, s.chain_blocks, s.chain_digest, s.ttl, s.created_at as session_started, s.owner,
  t.step, t.steps, t.refunds, t.max_steps, t.warned, t.cap_usd as turn_cap, t.spent_usd as turn_spent,
  t.reserved_usd as turn_reserved, t.last_tool, t.children_usd, t.children_promised_usd, t.parent, t.shared_key,
  s.kind, s.depth, s.tools,
  case when s.cap_usd is null then 0 else (
    select coalesce(sum(o.children_usd + o.children_promised_usd), 0) from turns o
    where o.session = s.id and o.id <> t.id) end as others_children_usd,
  (select json_object_agg(x.subject, x.id || ': ' || x.note) from stops x
   where x.scope = 'tool' and x.lifted_at is null) as stopped_tools,
  extract(epoch from t.deadline_at - clock_now())::float8 as seconds_left,
  (select coalesce(max(ordinal) + 1, 0) from messages m where m.turn = t.id and m.step = t.step) as next_ordinal,
  (select count(*) from calls c where c.turn = t.id and c.step = t.step + 1 and c.status = 'failed') as failed_tries,
  (select case when c.status = 'failed' then c.purpose end from calls c
   where c.turn = t.id and c.step = t.step + 1 order by c.seq desc limit 1) as failed_purpose
from turns t join sessions s on s.id = t.session
where t.id = %(turn)s
""",
    "turns_pkey",
    "sessions_pkey",
)

# Runs of the last committed step whose results are not in the transcript yet: what a crash left open.
OPEN_RUNS = named(
    "open_runs",
    """
select r.step, r.ordinal, r.call_id, r.tool, r.arguments, r.repeat, r.status, r.result, r.is_error, r.may_run_until
from tool_runs r
where r.turn = %(turn)s and r.step = %(step)s
  and not exists (select 1 from messages m where m.turn = r.turn and m.step = r.step and m.ordinal = r.ordinal)
order by r.ordinal
""",
    "tool_runs_pkey",
)

# Cancels and steers work within two seconds with Redis gone: one question a second a process. `claim` tells which of
# them nobody in that process has in hand.
# A turn is cancelled with whatever it is a child of, at any height; a child in the background with nothing above it.
MY_TURNS = named(
    "my_turns",
    """
select t.id, t.session, t.claim, t.cancel_requested_at is not null or exists (
    with recursive up as (
      select p.parent, p.background, p.status, p.cancel_requested_at from turns p
      where p.id = t.parent and not t.background
      union all
      select p.parent, p.background, p.status, p.cancel_requested_at from up join turns p on p.id = up.parent
      where not up.background
    )
    select 1 from up where up.cancel_requested_at is not null or up.status in ('done', 'failed', 'cancelled')
  ) as cancelled, exists (
    select 1 from inbox i where i.session = t.session and i.folded_into is null and i.kind = 'steer'
  ) as steered, exists (
    select 1 from stops x where x.lifted_at is null and (x.scope = 'fleet'
      or x.scope = 'person' and x.subject = t.requested_by::text or x.scope = 'job' and x.subject = t.job::text
      or x.scope = 'profile' and x.subject = (select s.profile from sessions s where s.id = t.session))
  ) as stopped, (
    select json_object_agg(x.subject, x.id || ': ' || x.note) from stops x
    where x.lifted_at is null and x.scope = 'tool'
  ) as stopped_tools
from turns t where t.holder = %(holder)s and t.status = 'running'
""",
    "turns_held",
)

# A turn that its holder let go of gets a holder that no process has: the sweep frees it as it frees a dead one's.
DISOWN = named(
    "disown",
    """
update turns set holder = '00000000-0000-0000-0000-000000000000'
where id = %(turn)s and claim = %(claim)s and status = 'running' returning id
""",
    "turns_pkey",
)

"""What the holder reads of what a crash left open, and what a process asks each second about the turns it holds."""

from __future__ import annotations

from shared.store.statements import named

# Runs of the last committed step whose results are not in the transcript yet: what a crash left open.
OPEN_RUNS = named(
    "open_runs",
    """
select r.step, r.ordinal, r.call_id, r.tool, r.arguments, r.repeat, r.status, r.result, r.is_error, r.may_run_until,
  extract(epoch from r.may_run_until - clock_timestamp())::float8 as left_s
from tool_runs r
where r.turn = %(turn)s and r.step = %(step)s
  and not exists (select 1 from messages m where m.turn = r.turn and m.step = r.step and m.ordinal = r.ordinal)
order by r.ordinal
""",
    "tool_runs_pkey",
)

# The answer of a turn whose holder was lost after recording it and before the end of the turn: nothing came after
# it, no run is of its step.
ANSWERED = named(
    "answered",
    """
select m.content, (
  select c.stop_reason from calls c where c.turn = m.turn and c.step = m.step and c.status = 'settled'
    and c.purpose in ('main', 'final') order by c.seq desc limit 1
) as stop_reason
from messages m
where m.turn = %(turn)s and m.step = %(step)s and m.ordinal = 0 and m.role = 'assistant' and not m.cut
  and not exists (select 1 from messages n where n.session = m.session and n.id > m.id)
  and not exists (select 1 from tool_runs r where r.turn = m.turn and r.step = m.step)
""",
    "messages_step_key",
    "messages_of_session",
    "tool_runs_pkey",
    "calls_of_turn|calls_one_answer_a_step",
)

# What the turn's runs asked and what came of them, newest first, without notes of ours, since somebody last put words
# into the turn: whether it goes round in a circle (workers/circling.py). Of a result that is kept whole the row has a
# preview with a handle of its own, which says nothing: the whole one's digest stands beside it.
RUN_HISTORY = named(
    "run_history",
    """
select r.step, r.digest, r.status, r.repeat, coalesce(a.came, md5(split_part(r.result, %(mark)s, 1))) as came
from tool_runs r left join artifacts a on a.turn = r.turn and a.step = r.step and a.ordinal = r.ordinal
where r.turn = %(turn)s and r.status in ('done', 'failed', 'unknown', 'denied') and r.result is not null
  and r.step > coalesce(
    (select max(m.step) from messages m where m.turn = %(turn)s and m.role = 'user' and m.author <> 'tool'), -1)
order by r.step desc, r.ordinal desc limit %(limit)s
""",
    "tool_runs_pkey",
    "messages_step_key",
    "artifacts_of_run",
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

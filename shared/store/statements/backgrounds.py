"""What runs in the background: begun and settled by the turn's holder; read by whoever polls, and by its own worker.

Lock order: the session row first, as for every write of a holder.
"""

from __future__ import annotations

from shared.store.statements import named

# Before the process is begun: a worker that dies between the two leaves a row that says where it may have been.
# A name is given once, by a run that is not begun again: what is there already is this very statement, sent twice.
BACKGROUND_BEGIN = named(
    "background_begin",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence)
insert into backgrounds (turn, name, session, boot_id, host, may_run_until, fence)
select t.id, %(name)s, s.id, t.holder, %(host)s, clock_timestamp() + %(seconds)s * interval '1 second', s.fence
from s, turns t where t.id = %(turn)s and (t.status = 'running') is true
on conflict (turn, name) do update set fence = excluded.fence
returning boot_id
""",
    "sessions_pkey",
)

# The first word on an ending stands.
BACKGROUND_SETTLE = named(
    "background_settle",
    """
with s as (update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence),
u as (
  update backgrounds set status = %(status)s, ending = %(ending)s, ended_at = clock_now(), fence = s.fence
  from s where backgrounds.turn = %(turn)s and backgrounds.name = %(name)s and backgrounds.status = 'running'
  returning 1
)
select id from s
""",
    "sessions_pkey",
    "backgrounds_pkey",
)

# For who polls a process that this worker does not have.
BACKGROUND = named(
    "background",
    "select name, boot_id, host, status, ending, may_run_until, clock_timestamp() < may_run_until as may_run"
    " from backgrounds where turn = %(turn)s and name = %(name)s",
    "backgrounds_pkey",
)

# Of the turns that a worker still runs something for: those that it may go on with. A turn that is over, or that
# another holds by now, has nothing to do here any more. One that `waits` is better claimed here than anywhere.
BACKGROUNDS_GO_ON = named(
    "backgrounds_go_on",
    """
select id::text, status = 'queued' as waits from turns where id = any(%(turns)s::uuid[])
  and (status in ('queued', 'parked') or (status = 'running' and holder = %(boot)s))
""",
    "turns_pkey",
)

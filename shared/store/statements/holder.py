"""What the holder reads of what a crash left open, and what a process asks each second about the turns it holds."""

from __future__ import annotations

from shared.store.statements import named

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
MY_TURNS = named(
    "my_turns",
    """
select id, session, claim, cancel_requested_at is not null as cancelled from turns
where holder = %(holder)s and status = 'running'
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

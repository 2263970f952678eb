"""Trees of turns: what hangs below a turn that is over, and what a child that its parent let go brings home.

Plain reads but for `inherit`: what they find is ended by `shared.store.cancel`, or told by `shared.store.children`,
which look again under their locks.
"""

from __future__ import annotations

from shared.store.statements import named

# --- what nobody will read -------------------------------------------------------------------------------------------

# Of one turn, from root to leaf, without those in the background, which it has let go. A running one is told to end,
# the others end at once.
LIVE_BELOW = named(
    "live_below",
    """
with recursive below(id, depth) as (
  select c.id, 1 from turns c
  where c.parent = %(turn)s and not c.background and c.status in ('queued', 'running', 'parked')
  union all
  select c.id, b.depth + 1 from below b join turns c on c.parent = b.id
  where not c.background and c.status in ('queued', 'running', 'parked')
)
select id from below order by depth, id limit %(limit)s
""",
    "turns_live_children",
)
# Of the whole house: turns that nobody holds and whose parent, or one further up, is over or was told to end. A running
# one learns it by its process's question.
LEFT_CHILDREN = named(
    "left_children",
    """
with recursive below(id, status, depth) as (
  select c.id, c.status, 1 from turns c join turns p on p.id = c.parent
  where c.parent is not null and c.status in ('queued', 'running', 'parked') and not c.background
    and (p.status in ('done', 'failed', 'cancelled') or p.cancel_requested_at is not null)
  union
  select c.id, c.status, b.depth + 1 from below b join turns c on c.parent = b.id
  where not c.background and c.status in ('queued', 'running', 'parked')
)
select id, min(depth) as depth from below where status in ('queued', 'parked')
group by id order by min(depth), id limit %(limit)s
""",
    "turns_live_children",
)
# Of one turn: whether it is below such a turn.
IS_LEFT = named(
    "is_left",
    """
with recursive up as (
  select p.parent, p.background, p.status, p.cancel_requested_at
  from turns t join turns p on p.id = t.parent where t.id = %(turn)s and not t.background
  union all
  select p.parent, p.background, p.status, p.cancel_requested_at from up join turns p on p.id = up.parent
  where not up.background
)
select 1 as left from up where up.cancel_requested_at is not null or up.status in ('done', 'failed', 'cancelled')
limit 1
""",
    "turns_pkey",
)

# --- the end of a child ----------------------------------------------------------------------------------------------

PARENT_OF = named(
    "parent_of",
    """
select c.parent, c.background, p.session from turns c left join turns p on p.id = c.parent where c.id = %(turn)s
""",
    "turns_pkey",
)
REPORT_OF = named(
    "report_of",
    """
select c.child_index, c.status, c.answer, c.error_text, c.steps - c.refunds as steps, c.requested_by,
  c.spent_usd + c.children_usd as usd, c.cost_unknown or c.children_unknown as unknown, s.title, s.workspace, p.session,
  (select count(*) from turns o where o.parent = c.parent and o.parent_step = c.parent_step
    and o.parent_ordinal = c.parent_ordinal) as children
from turns c join sessions s on s.id = c.session join turns p on p.id = c.parent
where c.id = %(turn)s
""",
    "turns_pkey",
    "turns_of_parent",
)
# The oldest report of a session that no turn is there to read, with the limits of the turn that delegated.
UNREAD_REPORT = named(
    "unread_report",
    """
select i.author, i.turn as child, s.kind, p.deadline_s, p.max_steps, p.cap_usd
from inbox i join sessions s on s.id = i.session join turns c on c.id = i.turn join turns p on p.id = c.parent
where i.session = %(session)s and i.folded_into is null and i.kind = 'child'
  and not exists (
    select 1 from turns t where t.session = %(session)s and t.status in ('queued', 'running', 'parked')
      and t.class <> 'chore'
  )
order by i.id limit 1
""",
    "inbox_waiting|inbox_unread",
)
# What is told of a child on its parent's stream; nothing where the parent is over, or the child is not.
ENDED_CHILD = named(
    "ended_child",
    """
select c.parent, c.parent_step, c.parent_ordinal, c.child_index, c.session, c.status, c.steps - c.refunds as steps,
  c.spent_usd + c.children_usd as usd, c.cost_unknown or c.children_unknown as unknown, s.title, q.fence
from turns c join sessions s on s.id = c.session join turns p on p.id = c.parent join sessions q on q.id = p.session
where c.id = %(turn)s and c.status in ('done', 'failed', 'cancelled')
  and p.status in ('queued', 'running', 'parked')
""",
    "turns_pkey",
    "sessions_pkey",
)
# Whose words stand in the report: its reader has no more authority than they had together.
INHERIT = named(
    "inherit",
    """
update turns set contributors = c.contributors, job = p.job
from turns c join turns p on p.id = c.parent where turns.id = %(turn)s and c.id = %(child)s
""",
    "turns_pkey",
)

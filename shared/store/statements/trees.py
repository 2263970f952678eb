"""Trees of turns: what hangs below a turn that is over, and nobody will read. Followed from parent to child; a child in
the background was let go by its parent and is no part of its tree.

Plain reads: each turn that they find is ended by `shared.store.cancel`, which looks again under its locks.
"""

from __future__ import annotations

from shared.store.statements import named

# Of one turn, from root to leaf. A running one is told to end, the others end at once.
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

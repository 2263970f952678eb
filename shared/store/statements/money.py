"""Money that a turn is short of: what it waits for, whether there is room for it, and the caps that make room.

Caps and what counts in them are columns of the session's and of its turns' rows. Lock order: the session row, then the
turn row; whoever makes room (a raised cap, a child's end) locks the sleeper first and looks in a later statement.
"""

from __future__ import annotations

from typing import LiteralString

from shared.store.statements import named

# The holder, right before it parks: the call it cannot make, and until when it may wait for the money. A second wait
# for the same call has the limit of the first.
COME_SHORT = named(
    "come_short",
    """
with s as (select id, fence from sessions where id = %(session)s and fence = %(fence)s)
update turns set short_usd = %(short_usd)s, short_of = %(short_of)s, fence = s.fence,
  short_until = coalesce(turns.short_until, clock_now() + %(limit_s)s::float8 * interval '1 second')
from s where turns.id = %(turn)s and (turns.status = 'running') is true
returning turns.short_until
""",
    "turns_pkey",
)
# As the rows have it: caps may be changed by others while a turn runs, and a child in the background gives back.
MONEY_OF = named(
    "money_of",
    """
select t.cap_usd as turn_cap, t.spent_usd as turn_spent, t.reserved_usd as turn_reserved, t.children_usd,
  t.children_promised_usd,
  (select version from budget_rules) as budget_version,
  q.cap_usd as session_cap, q.spent_usd as session_spent, q.reserved_usd as session_reserved,
  (select coalesce(sum(o.children_usd + o.children_promised_usd), 0) from turns o
   where o.session = q.id and o.id <> t.id) as others_children_usd
from turns t join sessions q on q.id = t.session where t.id = %(turn)s
""",
    "turns_pkey",
    "sessions_pkey",
)
# Which per cent of a cap people have been told of, so that the next holder does not tell it again.
TOLD_PEOPLE = named(
    "told_people",
    """
with s as (select id, fence from sessions where id = %(session)s and fence = %(fence)s for no key update)
update turns set warned = turns.warned || %(warned)s::jsonb, fence = s.fence
from s where turns.id = %(turn)s and (turns.status = 'running') is true
returning turns.id
""",
    "turns_pkey",
)
# What a turn had said when it ended for want of money.
LAST_WORDS = named(
    "last_words",
    """
select content from messages where turn = %(turn)s and role = 'assistant' order by step desc, ordinal desc limit 20
""",
    "messages_step_key",
)

# --- caps, as a person sets them -------------------------------------------------------------------------------------

LOCK_SESSION = named(
    "lock_session", "select id, kind from sessions where id = %(session)s for no key update", "sessions_pkey"
)
# A cap and its line in the audit stand or fall together. null is no cap.
_WAS: LiteralString = """ where id = %(capped)s), x as (
  update """
_SET: LiteralString = """ c set cap_usd = %(cap_usd)s::numeric from was where c.id = was.id
  returning c.id, was.cap_usd as before, c.cap_usd as now
)
insert into audit (principal, action, subject, detail)
select %(principal)s, %(action)s, id::text, format('from %%s to %%s', coalesce('$' || before, 'none'),
  coalesce('$' || now, 'none'))
from x
"""
_WHICH: LiteralString = "with was as (select id, cap_usd from "
CAP_TURN = named("cap_turn", _WHICH + "turns" + _WAS + "turns" + _SET, "turns_pkey")
CAP_SESSION = named("cap_session", _WHICH + "sessions" + _WAS + "sessions" + _SET, "sessions_pkey")

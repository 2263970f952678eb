"""Shared money: what turns draw from a window of a job's, a person's or the team's cap, and what comes back.

Lock order: the turn's session row, then rows of `budgets` by scope, id and window, then `draws`. No statement here is
part of a step's transactions: one row that every step wrote would take 3,400 commits a second down to 1,000
(economics.md).
"""

from __future__ import annotations

from shared.store.statements import named

# The caps that hold for a turn, each with its window as it stands and what the turn has drawn there; one row with nulls
# where no cap holds. Read after the locks, in a later statement, it is what a draw is decided by.
BUDGETS_OVER = named(
    "budgets_over",
    """
select r.version, o.scope, o.id, o.period, o."window", o.until, o.cap_usd, b.spent_usd, b.reserved_usd, d.amount_usd,
  t.spent_usd - d.from_usd as used_usd, t.spent_usd as turn_spent
from turns t cross join budget_rules r
left join lateral caps_over(t.id) o on true
left join budgets b on b.scope = o.scope and b.id = o.id and b."window" = o."window"
left join draws d on d.turn = t.id and d.scope = o.scope and d.id = o.id and d."window" = o."window"
where t.id = %(turn)s
order by o.scope, o.id, o."window"
""",
    "turns_pkey",
    "draws_pkey",
)
# A window that nobody has drawn from yet begins with what was spent in it.
OPEN_WINDOWS = named(
    "open_windows",
    """
insert into budgets (scope, id, "window", cap_usd, spent_usd)
select o.scope, o.id, o."window", o.cap_usd, spent_since(o.scope, o.id, o.since) from caps_over(%(turn)s) o
where not exists (select 1 from budgets b where b.scope = o.scope and b.id = o.id and b."window" = o."window")
order by o.scope, o.id, o."window"
on conflict do nothing
""",
    "budgets_pkey",
)
# Those that the turn draws from or has drawn from, locked in one order by everybody.
LOCK_WINDOWS = named(
    "lock_windows",
    """
select b.scope from budgets b
where (b.scope, b.id, b."window") in (
  select d.scope, d.id, d."window" from draws d where d.turn = %(turn)s
  union select o.scope, o.id, o."window" from caps_over(%(turn)s) o
)
order by b.scope, b.id, b."window" for update
""",
    "draws_pkey",
)
# What a turn has used of its blocks is booked and the rest is free again. `held`: by its holder, between two calls;
# else of a turn that nobody holds, under its session's lock, so that nobody claims it meanwhile.
CLOSE_DRAWS = named(
    "close_draws",
    """
with d as (
  delete from draws using turns t
  where t.id = %(turn)s and draws.turn = t.id and (t.status = 'running') = %(held)s::bool
  returning draws.scope, draws.id, draws."window", draws.amount_usd, greatest(t.spent_usd - draws.from_usd, 0) as used
)
update budgets b set spent_usd = b.spent_usd + d.used, reserved_usd = greatest(b.reserved_usd - d.amount_usd, 0)
from d where b.scope = d.scope and b.id = d.id and b."window" = d."window"
returning b.scope
""",
    "draws_pkey",
    "budgets_pkey",
)
# Blocks of the amounts that were decided under the locks.
TAKE_DRAWS = named(
    "take_draws",
    """
with x as (
  select * from unnest(%(b_scope)s::text[], %(b_id)s::text[], %(b_window)s::text[], %(b_amount)s::numeric[],
    %(b_cap)s::numeric[]) as x(scope, id, "window", amount, cap)
), b as (
  update budgets b set reserved_usd = b.reserved_usd + x.amount, cap_usd = x.cap
  from x where b.scope = x.scope and b.id = x.id and b."window" = x."window"
  returning b.scope, b.id, b."window", x.amount
)
insert into draws (turn, scope, id, "window", amount_usd, from_usd)
select t.id, b.scope, b.id, b."window", b.amount, t.spent_usd from b, turns t
where t.id = %(turn)s and (t.status = 'running') is true
returning scope
""",
    "budgets_pkey",
    "turns_pkey",
)

# --- by the sweep ----------------------------------------------------------------------------------------------------

# Turns that nobody holds and that have not given back: parked, over, or taken from a worker that died.
LEFT_DRAWS = named(
    "left_draws",
    """
select distinct d.turn as id, t.session from draws d join turns t on t.id = d.turn
where t.status <> 'running' limit %(limit)s
""",
)
# Whoever makes room in a shared window (a raise, a new day, a turn that gives back) tells nobody: it is looked for.
SHORT_OF_BUDGET = named(
    "short_of_budget",
    """
select t.id from turns t
where t.status = 'parked' and t.short_of is not null and has_room(t.id) order by t.parked_at limit %(limit)s
""",
    "turns_short_of_budget",
)
# The limit of the wait is of the call, however often it was woken in vain: `short_until` stays.
WAKE_FOR_BUDGET = named(
    "wake_for_budget",
    """
update turns t set status = 'queued', parked_on = null, wake_at = null, parked_at = null, short_of = null,
  deadline_at = deadline_at + (clock_now() - parked_at), queued_at = clock_now()
where t.id = %(turn)s and t.status = 'parked' and t.short_of is not null and has_room(t.id)
returning id, class
""",
    "turns_pkey|turns_short_of_budget",
)
# People are told once a window at 50, 80 and 100 % of what is spent. `told` is compared, so two schedulers tell once.
BUDGETS_TO_TELL = named(
    "budgets_to_tell",
    """
select b.scope, b.id, b."window", b.told, x.percent, b.spent_usd, c.cap_usd
from budgets b cross join budget_rules r
cross join lateral (
  select c.cap_usd from budget_caps c
  where c.scope = b.scope and c.id in (b.id, '*') and b."window" = budget_window(c.period, r.zone, clock_now())
  order by c.id = '*' limit 1
) c
cross join lateral (
  select case when b.spent_usd >= c.cap_usd then 100 when b.spent_usd >= c.cap_usd * 0.8 then 80
    when b.spent_usd >= c.cap_usd * 0.5 then 50 else 0 end as percent
) x
where x.percent > b.told limit %(limit)s
""",
)
TELL_BUDGET = named(
    "tell_budget",
    """
with b as (
  update budgets set told = %(percent)s
  where scope = %(scope)s and id = %(id)s and "window" = %(window)s and told = %(told)s
  returning scope, id, "window"
)
insert into audit (action, subject, detail)
select 'budget.' || %(percent)s, b.scope || ' ' || b.id || ' ' || b."window", %(detail)s from b
returning id
""",
    "budgets_pkey",
)

# --- caps, as a person sets them -------------------------------------------------------------------------------------

# One change at a time: two people who raise one cap at once do so one after the other, and the second one is told.
LOCK_RULES = named("lock_rules", "select zone, version from budget_rules for update")
CAP_STANDS = named(
    "cap_stands",
    "select cap_usd from budget_caps where scope = %(scope)s and id = %(id)s and period = %(period)s",
    "budget_caps_pkey",
)
SET_BUDGET = named(
    "set_budget",
    """
insert into budget_caps (scope, id, period, cap_usd) values (%(scope)s, %(id)s, %(period)s, %(cap_usd)s::numeric)
on conflict (scope, id, period) do update set cap_usd = excluded.cap_usd
""",
)
DROP_BUDGET = named(
    "drop_budget",
    "delete from budget_caps where scope = %(scope)s and id = %(id)s and period = %(period)s",
    "budget_caps_pkey",
)
# What is over its threshold no more is told again when it gets there.
TOLD_ANEW = named(
    "told_anew",
    """
update budgets b set told = case when b.spent_usd >= %(cap_usd)s::numeric then b.told
  when b.spent_usd >= %(cap_usd)s::numeric * 0.8 then least(b.told, 80)
  when b.spent_usd >= %(cap_usd)s::numeric * 0.5 then least(b.told, 50) else 0 end
from budget_rules r
where b.scope = %(scope)s and b.id = %(id)s and b."window" = budget_window(%(period)s, r.zone, clock_now())
""",
    "budgets_pkey",
)
# A window without a cap is counted by nobody: it goes, with what is drawn from it, and begins anew from its calls
# should a cap be set again.
FORGET_WINDOWS = named(
    "forget_windows",
    """
delete from budgets b using budget_rules r
where b.scope = %(scope)s and b."window" = budget_window(%(period)s, r.zone, clock_now())
  and not exists (
    select 1 from budget_caps c where c.scope = b.scope and c.period = %(period)s and c.id in (b.id, '*'))
""",
    "budget_caps_pkey",
)
# The team's zone as the scheduler's settings have it. Windows of another zone are none of this one's.
SET_ZONE = named(
    "set_zone",
    """
with r as (
  update budget_rules set zone = %(zone)s, version = version + 1 where zone <> %(zone)s returning zone
), gone as (
  delete from budgets using r
  where "window" <> 'ever' and "window" >= to_char(clock_now() - interval '2 days', 'YYYY-MM')
  returning 1
)
select zone from r
""",
)
BUDGET_AUDIT = named(
    "budget_audit",
    """
insert into audit (principal, action, subject, detail) values (%(principal)s, 'cap.budget', %(subject)s, %(detail)s)
""",
)

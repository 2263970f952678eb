"""Leader first: of the turns that share a cold prefix one goes ahead, and the rest follow its first token.

The gate is a row that the pick reads (`admission`); everything here is a hint about money. A row that is wrong costs a
second write of a prefix or a wait that its deadline bounds, never a turn.
"""

from __future__ import annotations

from shared.store.statements import named

# In the claim's transaction, under the claim lock: the turn just claimed leads where the prefix is cold and nobody
# leads.
# A leader that is past its deadline still leads: everybody goes then, and none of them holds up the rest once more.
# Its deadline is a second to reach the provider and twice the median time to the first token, at most 8 s.
LEAD = named(
    "lead",
    """
insert into shared_prefixes (key, leader, leader_claim, leader_deadline)
select %(key)s, %(turn)s, %(claim)s, clock_timestamp() + least(8, 1 + 2 * coalesce((
    select percentile_cont(0.5) within group (order by c.first_token_ms) / 1000 from (
      select model, first_token_ms from calls order by seq desc limit 200
    ) c where c.model = %(model)s and c.first_token_ms is not null
  ), 4)) * interval '1 second'
on conflict (key) do update set leader = excluded.leader, leader_claim = excluded.leader_claim,
  leader_deadline = excluded.leader_deadline
where (shared_prefixes.warm_until is null or shared_prefixes.warm_until <= clock_now())
  and not exists (
    select 1 from turns l where l.id = shared_prefixes.leader and l.status = 'running'
      and l.claim = shared_prefixes.leader_claim
  )
returning key
""",
    "calls_seq_key",
)
# The first byte of a reply: from here on others read what it wrote. Written only where it tells something new, by
# whoever still holds its turn. How many wait for it is how often to ring, within reason.
WARMED = named(
    "warmed",
    """
with w as (
  update shared_prefixes set warm_until = clock_now() + %(warm_s)s::float8 * interval '1 second', leader = null,
    leader_claim = null, leader_deadline = null
  where key = %(key)s
    and (leader is not null or warm_until is null
      or warm_until < clock_now() + %(warm_s)s::float8 / 2 * interval '1 second')
    and exists (select 1 from sessions s where s.id = %(session)s and s.fence = %(fence)s)
  returning key
)
select (
  select count(*) from (
    select 1 from turns t where t.shared_key = w.key and t.status = 'queued' limit %(most)s
  ) q
)::int as waiting from w
""",
    "turns_sharing",
)
# The provider refused the leader for now: whoever is next may try.
STEP_BACK = named(
    "step_back",
    """
update shared_prefixes set leader = null, leader_claim = null, leader_deadline = null
where key = %(key)s and leader = %(turn)s returning key
""",
    "shared_prefixes_pkey|shared_prefixes_led",
)
FORGET_SHARED = named(
    "forget_shared",
    """
delete from shared_prefixes where key in (
  select key from shared_prefixes where leader is null and warm_until < clock_now() - interval '1 hour' limit %(limit)s
  for update skip locked
)
""",
)

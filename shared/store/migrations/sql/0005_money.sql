-- Caps that many turns share: of a job, of a person (their jobs' turns included), of the team, each a day, a month or
-- for ever. Windows are calendar ones in the team's zone, by clock_now. `budgets` has a row a window; its cap_usd is the
-- cap as it was when somebody last drew from it, the cap that holds is in `budget_caps`.
alter table budgets alter column cap_usd drop not null;
alter table budgets add column told integer not null default 0;

-- `version` rises with each change of a cap or of the zone: whoever holds a turn compares it when it reserves a call, and
-- reads nothing else where it is the same.
create table budget_rules (
  one boolean primary key default true check (one),
  zone text not null default 'UTC',
  version bigint not null default 0
);
insert into budget_rules default values;

-- `id` is a job's or a principal's, 'team' for the team, '*' for every job or person that has no cap of its own.
create table budget_caps (
  scope text not null check (scope in ('job', 'person', 'team')),
  id text not null,
  period text not null check (period in ('day', 'month', 'ever')),
  cap_usd numeric not null check (cap_usd >= 0),
  primary key (scope, id, period),
  constraint one_team check ((scope = 'team') = (id = 'team'))
);
create function budgets_changed() returns trigger language plpgsql as $$
begin
  update budget_rules set version = version + 1;
  return null;
end $$;
create trigger budget_caps_changed after insert or update or delete on budget_caps
  for each statement execute function budgets_changed();

-- What a turn has drawn from a window and not given back: `amount_usd` counts as reserved there. What of it is used is
-- what the turn has spent since: its spent_usd less `from_usd`.
create table draws (
  turn uuid not null references turns,
  scope text not null,
  id text not null,
  "window" text not null,
  amount_usd numeric not null check (amount_usd >= 0),
  from_usd numeric not null,
  primary key (turn, scope, id, "window"),
  constraint draws_window foreign key (scope, id, "window") references budgets on delete cascade
);
create index draws_of_window on draws (scope, id, "window");

-- Which cap a turn that waits for money is short of: its own or its session's (null), or one that many share.
alter table turns add column short_of text check (short_of in ('budget'));
create index turns_short_of_budget on turns (parked_at) where status = 'parked' and short_of is not null;
create index jobs_of_principal on jobs (principal);
create index calls_by_time on calls using brin (created_at);

create function budget_window(period text, zone text, at timestamptz) returns text language sql stable as $$
  select case period when 'day' then to_char(at at time zone zone, 'YYYY-MM-DD')
    when 'month' then to_char(at at time zone zone, 'YYYY-MM') else 'ever' end
$$;
-- A day of the calendar has 23 or 25 hours where clocks change: its ends are midnights of the zone.
create function budget_since(period text, zone text, at timestamptz) returns timestamptz language sql stable as $$
  select case when period = 'ever' then '-infinity'::timestamptz
    else date_trunc(period, at at time zone zone) at time zone zone end
$$;
create function budget_until(period text, zone text, at timestamptz) returns timestamptz language sql stable as $$
  select case when period = 'ever' then '9000-01-01 00:00Z'::timestamptz
    else (date_trunc(period, at at time zone zone) + ('1 ' || period)::interval) at time zone zone end
$$;

-- Who pays for a turn: its job, if it is one's, and the person who asked for it or whose job it is.
create function payer_of(asked uuid) returns table (job uuid, person uuid) language sql stable as $$
  select w.job, coalesce((select j.owner from jobs j where j.id = w.job), w.requested_by) from (
    select coalesce(t.job, (select j.id from jobs j where j.principal = t.requested_by limit 1)) as job, t.requested_by
    from turns t where t.id = asked
  ) w
$$;
-- The shared caps that hold for a turn now, each with its window.
create function caps_over(asked uuid)
returns table (scope text, id text, period text, "window" text, since timestamptz, until timestamptz, cap_usd numeric)
language sql stable as $$
  select x.scope, x.id, x.period, budget_window(x.period, r.zone, n.now), budget_since(x.period, r.zone, n.now),
    budget_until(x.period, r.zone, n.now), x.cap_usd
  from (
    select distinct on (c.scope, c.period) c.scope, c.period, c.cap_usd,
      case c.scope when 'team' then 'team' when 'job' then p.job::text else p.person::text end as id
    from payer_of(asked) p join budget_caps c on c.scope = 'team' or c.scope = 'person' and c.id in (p.person::text, '*')
      or c.scope = 'job' and p.job is not null and c.id in (p.job::text, '*')
    order by c.scope, c.period, c.id = '*'
  ) x, budget_rules r, (select clock_now() as now) n
$$;
-- What was spent in a window before anybody drew from it: a cap may be set in the middle of a month. A call that is out
-- counts by its reservation, one whose cost nobody knows by what was charged for it.
create function spent_since(scope text, id text, since timestamptz) returns numeric language sql stable as $$
  select coalesce(sum(coalesce(c.cost_usd, c.reserved_usd)), 0)
  from calls c
  where c.created_at >= spent_since.since and (spent_since.scope = 'team' or exists (
    select 1 from payer_of(c.turn) p
    where case spent_since.scope when 'job' then p.job else p.person end = spent_since.id::uuid))
$$;
-- Whether what a turn is short of fits into each window that it would have to draw it from.
create function budgets_have_room(asked uuid) returns boolean language sql stable as $$
  select not exists (
    select 1 from turns t cross join lateral caps_over(t.id) o
    left join budgets b on b.scope = o.scope and b.id = o.id and b."window" = o."window"
    where t.id = asked and coalesce(b.spent_usd + b.reserved_usd, 0) + t.short_usd > o.cap_usd
  )
$$;
create or replace function has_room(asked uuid) returns boolean language sql stable as $$
  select (t.cap_usd is null
      or t.spent_usd + t.reserved_usd + t.children_usd + t.children_promised_usd + t.short_usd <= t.cap_usd)
    and (s.cap_usd is null or s.spent_usd + s.reserved_usd + t.short_usd + (
      select sum(o.children_usd + o.children_promised_usd) from turns o where o.session = s.id) <= s.cap_usd)
    and (t.short_of is null or budgets_have_room(t.id))
  from turns t join sessions s on s.id = t.session where t.id = asked
$$;

-- Breakers of a job that ends well each time, off where null: how many runs in a row may say the same; how many times as
-- much its last runs may cost as those before. `paused_why`: which breaker paused it (null: a person did). Only runs
-- after `watched_from` count: somebody has looked, and let it go on.
alter table jobs add column stop_same integer check (stop_same between 2 and 100);
alter table jobs add column stop_dearer numeric check (stop_dearer between 1.1 and 1000);
alter table jobs add column paused_why text;
alter table jobs add column watched_from timestamptz;

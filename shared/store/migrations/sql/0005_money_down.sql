alter table jobs drop column stop_same, drop column stop_dearer, drop column paused_why, drop column watched_from;
create or replace function has_room(asked uuid) returns boolean language sql stable as $$
  select (t.cap_usd is null
      or t.spent_usd + t.reserved_usd + t.children_usd + t.children_promised_usd + t.short_usd <= t.cap_usd)
    and (s.cap_usd is null or s.spent_usd + s.reserved_usd + t.short_usd + (
      select sum(o.children_usd + o.children_promised_usd) from turns o where o.session = s.id) <= s.cap_usd)
  from turns t join sessions s on s.id = t.session where t.id = asked
$$;
drop function budgets_have_room(uuid), spent_since(text, text, timestamptz), caps_over(uuid), payer_of(uuid),
  budget_until(text, text, timestamptz), budget_since(text, text, timestamptz), budget_window(text, text, timestamptz);
drop index calls_by_time, jobs_of_principal, turns_short_of_budget;
alter table turns drop column short_of;
drop table draws, budget_caps, budget_rules;
drop function budgets_changed();
alter table budgets drop column told;
delete from budgets where cap_usd is null;
alter table budgets alter column cap_usd set not null;

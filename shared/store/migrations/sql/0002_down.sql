-- Rows that only the newer code knows are given the older word that says nearly the same; nothing of a transcript is lost.
update inbox set kind = 'delivery' where kind = 'child';
alter table inbox drop constraint inbox_kind_check;
alter table inbox add constraint inbox_kind_check check (kind in ('input', 'steer', 'delivery'));
alter table sessions drop column tools;
drop index turns_of_parent, turns_live_children, tool_runs_unknown;
drop function has_room(uuid);
alter table turns drop constraint short_of_money, drop column short_usd, drop column short_until;
alter table turns
  drop constraint child_has_place, drop column parent, drop column parent_step, drop column parent_ordinal,
  drop column child_index, drop column background, drop column children_usd,
  drop column children_promised_usd, drop column children_unknown;
drop table questions;
drop trigger approvals_fence on approvals;
drop index approvals_pending, approvals_by_age;
alter table approvals
  drop constraint approvals_run_key, drop column role, drop column requested_by, drop column four_eyes, drop column told, drop column fence;

-- What a turn waits for: a person's decision, a person's answer, its children. Each stands in a row of its own; the
-- turn's row is where reason and sleeper meet.
alter table approvals
  add column role text not null default 'approver' check (role in ('viewer', 'member', 'approver', 'admin')),
  add column requested_by uuid references principals,
  add column four_eyes boolean not null default false,
  add column told boolean not null default false,
  add column fence bigint not null default 0,
  add constraint approvals_run_key unique (turn, step, ordinal);
create index approvals_pending on approvals (turn) where status = 'pending';
create index approvals_by_age on approvals (created_at);
create trigger approvals_fence before insert on approvals for each row execute function check_fence();

create table questions (
  id uuid primary key,
  turn uuid not null references turns,
  session uuid not null references sessions,
  step integer not null,
  ordinal integer not null,
  question text not null,
  status text not null default 'open' check (status in ('open', 'answered', 'expired', 'void')),
  answer text,
  answered_by uuid references principals,
  created_at timestamptz not null default clock_now(),
  expires_at timestamptz,
  answered_at timestamptz,
  fence bigint not null,
  constraint questions_run_key unique (turn, step, ordinal)
);
create index questions_open on questions (turn) where status = 'open';
create trigger questions_fence before insert on questions for each row execute function check_fence();

-- A child is a session and a turn of its own; its turn names the run of its parent that asked for it.
alter table turns
  add column parent uuid references turns,
  add column parent_step integer,
  add column parent_ordinal integer,
  add column child_index integer,
  add column background boolean not null default false,
  add column children_usd numeric not null default 0,
  add column children_promised_usd numeric not null default 0 check (children_promised_usd >= 0),
  add column children_unknown boolean not null default false,
  add constraint child_has_place check ((parent is null) = (child_index is null));
create unique index turns_of_parent on turns (parent, parent_step, parent_ordinal, child_index)
  where parent is not null;
create index turns_live_children on turns (parent) where parent is not null and status in ('queued', 'running', 'parked');

-- Money that a turn waits for: what the call that it cannot make may cost, and until when it waits.
alter table turns
  add column short_usd numeric check (short_usd > 0),
  add column short_until timestamptz,
  add constraint short_of_money check (parked_on is distinct from 'money' or (short_usd is not null and short_until is not null));

-- Whether the call that a turn is short of fits under its own cap and its session's. What is promised to children counts
-- as spent, of every turn of the session.
create function has_room(asked uuid) returns boolean language sql stable as $$
  select (t.cap_usd is null
      or t.spent_usd + t.reserved_usd + t.children_usd + t.children_promised_usd + t.short_usd <= t.cap_usd)
    and (s.cap_usd is null or s.spent_usd + s.reserved_usd + t.short_usd + (
      select sum(o.children_usd + o.children_promised_usd) from turns o where o.session = s.id) <= s.cap_usd)
  from turns t join sessions s on s.id = t.session where t.id = asked
$$;

-- What nobody knows whether it happened: counted, and a mark of its turn and its session.
create index tool_runs_unknown on tool_runs (session, turn) where status = 'unknown';

-- Which tools a session has; null means those of its profile. A child has its parent's, less what a child may not.
alter table sessions add column tools text[];

alter table inbox drop constraint inbox_kind_check;
alter table inbox add constraint inbox_kind_check check (kind in ('input', 'steer', 'delivery', 'child'));

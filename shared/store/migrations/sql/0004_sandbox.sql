-- Processes that a tool run left running behind the wall. They live on one worker and no longer than their turn; who
-- claims the turn elsewhere reads here where that was, and that nobody knows how it ended.
create table backgrounds (
  turn uuid not null references turns,
  name text not null,
  session uuid not null references sessions,
  boot_id uuid not null,
  host text not null,
  status text not null default 'running' check (status in ('running', 'ended', 'unknown')),
  ending text,
  may_run_until timestamptz not null,
  started_at timestamptz not null default clock_now(),
  ended_at timestamptz,
  fence bigint not null,
  primary key (turn, name),
  constraint background_ended check ((status = 'running') = (ended_at is null))
);
create trigger backgrounds_fence before insert or update on backgrounds for each row execute function check_fence();
-- Of the claim: whose turn is better left to the worker where something of it runs.
create index backgrounds_running on backgrounds (may_run_until) where status = 'running';

-- Of what goes round in a circle (workers/circling.py): the digest of a result that is kept whole, by which whoever takes
-- the turn up knows it again. Null in rows of the release before.
alter table artifacts add column came text;

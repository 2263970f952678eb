-- What a session's reductions are decided by, beside the meters of 0001, and each decision with its arithmetic.
alter table sessions
  add column called_at timestamptz,
  add column regrow_to bigint not null default 0,
  add column warm_pings integer not null default 0,
  add column keep_warm boolean not null default false,
  add column most_pings integer not null default 0;
create index sessions_to_warm on sessions (prefix_warm_until) where keep_warm;
create index sessions_silent on sessions (called_at) where baseline_billed >= 20000 and kind = 'chat';

-- What a call was expected to be billed for, beside the bare estimate: what anchoring it on bills is worth.
alter table calls add column projected bigint;

create table reductions (
  id bigint primary key default nextval('transcript_id'),
  session uuid not null references sessions,
  turn uuid not null references turns,
  step integer not null,
  decision text not null check (decision in ('prune', 'compact', 'set_ttl', 'blocked', 'skipped')),
  cause text not null,
  arithmetic text not null,
  tokens_before bigint,
  tokens_after bigint,
  first_edit bigint,
  fence bigint not null,
  created_at timestamptz not null default clock_now()
);
create index reductions_of_session on reductions (session, id);
create trigger reductions_fence before insert on reductions for each row execute function check_fence();

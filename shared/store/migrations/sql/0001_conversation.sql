-- Who talks, and what was said: people, prefixes, jobs, sessions, turns, messages, edits. Order is the bigint ids of one shared sequence; UUIDs are public names and never an order.
create sequence transcript_id as bigint cache 1;

-- The clock that cache warmth, ticks, parks, deadlines and time-outs read. Leases stay on the real clock.
create table test_clock (
  one boolean primary key default true check (one),
  offset_s double precision not null default 0,
  target_s double precision not null default 0 check (target_s >= offset_s),
  jump boolean not null default false
);
insert into test_clock default values;

create function clock_now() returns timestamptz language plpgsql stable as $$
declare shift double precision;
begin
  select offset_s into shift from test_clock;
  return statement_timestamp() + make_interval(secs => coalesce(shift, 0));
end $$;

create table principals (
  id uuid primary key,
  name text not null unique check (length(name) between 1 and 200),
  kind text not null check (kind in ('person', 'job', 'service')),
  role text not null check (role in ('viewer', 'member', 'approver', 'admin')),
  created_at timestamptz not null default clock_now(),
  disabled_at timestamptz
);

create table tokens (
  digest bytea primary key check (length(digest) = 32),
  id uuid not null unique,
  principal uuid not null references principals,
  label text not null default '',
  created_at timestamptz not null default clock_now(),
  revoked_at timestamptz
);

create table prefixes (
  digest text primary key,
  system_text text not null,
  stable_length integer not null check (stable_length >= 0),
  context_length integer not null check (context_length >= 0),
  tools_text text not null,
  warm_until timestamptz,
  leader_call uuid,
  leader_deadline timestamptz,
  created_at timestamptz not null default clock_now()
) with (fillfactor = 70);

create table jobs (
  id uuid primary key,
  name text not null unique check (length(name) between 1 and 200),
  owner uuid not null references principals,
  principal uuid not null references principals,
  cron text not null,
  zone text not null,
  prompt text not null,
  tail text not null default '',
  workspace text,
  folder text,
  profile text not null default 'default',
  model text,
  cap_usd numeric check (cap_usd > 0),
  max_steps integer check (max_steps between 1 and 1000),
  deadline_s integer not null default 14400 check (deadline_s > 0),
  audience text not null default 'team' check (audience in ('private', 'team', 'people')),
  deliver_session uuid,
  deliver_file text,
  paused_at timestamptz,
  removed_at timestamptz,
  next_at timestamptz,
  created_at timestamptz not null default clock_now(),
  updated_at timestamptz not null default clock_now()
);
create index jobs_due on jobs (next_at) where paused_at is null and removed_at is null;

create table sessions (
  id uuid primary key,
  seq bigint not null default nextval('transcript_id') unique,
  owner uuid not null references principals,
  audience text not null default 'private' check (audience in ('private', 'team', 'people')),
  kind text not null default 'chat' check (kind in ('chat', 'job', 'child')),
  root uuid,
  depth integer not null default 0,
  title text not null default '',
  profile text not null default 'default',
  provider text not null,
  model text not null,
  workspace text not null,
  folder text,
  cap_usd numeric check (cap_usd > 0),
  spent_usd numeric not null default 0,
  reserved_usd numeric not null default 0 check (reserved_usd >= 0),
  cost_unknown boolean not null default false,
  fence bigint not null default 0,
  prefix text references prefixes,
  last_edit bigint not null default 0,
  baseline_estimate bigint,
  baseline_billed bigint,
  last_breakpoint_message bigint,
  chain_blocks integer,
  chain_digest text,
  prefix_warm_until timestamptz,
  ttl text not null default '5m' check (ttl in ('5m', '1h')),
  meter double precision not null default 0,
  compact_meter double precision not null default 0,
  junk_tokens bigint not null default 0,
  wrote_tokens double precision not null default 4000,
  hold_5m double precision not null default 0.1,
  hold_1h double precision not null default 0,
  ineffective_strikes integer not null default 0,
  fallback_streak integer not null default 0,
  verdict_due boolean not null default false,
  breaker_blocked_at timestamptz,
  created_at timestamptz not null default clock_now()
) with (fillfactor = 60);
create index sessions_by_owner on sessions (owner, seq);

create table session_people (
  session uuid not null references sessions,
  principal uuid not null references principals,
  primary key (session, principal)
);

create table turns (
  id uuid primary key,
  seq bigint not null default nextval('transcript_id') unique,
  session uuid not null references sessions,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'parked', 'done', 'failed', 'cancelled')),
  class text not null check (class in ('interactive', 'child', 'job', 'chore')),
  requested_by uuid not null references principals,
  contributors uuid[] not null default '{}',
  admit_key timestamptz not null,
  holder uuid,
  claim uuid,
  fence bigint not null default 0,
  parked_on text check (parked_on in ('approval', 'clarify', 'children', 'backoff', 'money', 'time')),
  parked_at timestamptz,
  wake_at timestamptz,
  deadline_s integer not null check (deadline_s > 0),
  deadline_at timestamptz,
  children_open integer not null default 0 check (children_open >= 0),
  cancel_requested_at timestamptz,
  cancelled_by uuid,
  attempts integer not null default 0,
  takeovers integer not null default 0,
  step integer not null default 0,
  steps integer not null default 0,
  refunds integer not null default 0 check (refunds >= 0),
  max_steps integer not null check (max_steps between 1 and 1000),
  warned jsonb not null default '{}',
  cap_usd numeric check (cap_usd > 0),
  spent_usd numeric not null default 0,
  reserved_usd numeric not null default 0 check (reserved_usd >= 0),
  cost_unknown boolean not null default false,
  last_tool text,
  answer text,
  error_code text,
  error_text text,
  created_at timestamptz not null default clock_now(),
  queued_at timestamptz not null default clock_now(),
  started_at timestamptz,
  finished_at timestamptz,
  constraint budget_holds check (steps - refunds <= max_steps),
  constraint running_has_holder check ((status = 'running') = (holder is not null)),
  constraint parked_has_reason check ((status = 'parked') = (parked_on is not null)),
  constraint terminal_has_end check ((status in ('done', 'failed', 'cancelled')) = (finished_at is not null)),
  constraint failed_has_code check ((status = 'failed') = (error_code is not null))
) with (fillfactor = 70);
create unique index turns_one_holder on turns (session) where status in ('running', 'parked');
create index turns_admission on turns (requested_by, admit_key, id) where status = 'queued';
create index turns_queue_of_session on turns (session, seq) where status = 'queued';
create index turns_of_session on turns (session, seq);
create index turns_held on turns (holder) where status = 'running';
create index turns_to_wake on turns (wake_at) where status = 'parked';

create table messages (
  id bigint primary key default nextval('transcript_id'),
  session uuid not null references sessions,
  turn uuid not null references turns,
  step integer not null,
  ordinal integer not null,
  author text not null,
  role text not null check (role in ('user', 'assistant')),
  content text not null,
  sent text,
  blocks text,
  stable_prefix_len integer,
  cut boolean not null default false,
  fence bigint not null,
  created_at timestamptz not null default clock_now(),
  constraint messages_step_key unique (turn, step, ordinal)
);
create index messages_of_session on messages (session, id);

create table edits (
  id bigint primary key default nextval('transcript_id'),
  session uuid not null references sessions,
  kind text not null check (kind in ('summary', 'stub', 'rewind', 'restore', 'prefix')),
  first bigint,
  last bigint,
  block integer,
  text text,
  prefix text references prefixes,
  cause text not null,
  tokens_before bigint,
  tokens_after bigint,
  fence bigint not null,
  created_at timestamptz not null default clock_now(),
  check (kind <> 'prefix' or prefix is not null)
);
create index edits_of_session on edits (session, id);


-- The spine's tables. Order is the bigint ids of one shared sequence; UUIDs are public names and never an order.
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

create table calls (
  id uuid primary key,
  seq bigint not null default nextval('transcript_id') unique,
  turn uuid not null references turns,
  session uuid not null references sessions,
  step integer not null,
  purpose text not null check (purpose in ('main', 'summary', 'final', 'ping')),
  status text not null default 'reserved' check (status in ('reserved', 'settled', 'failed', 'cut', 'lost')),
  provider text not null,
  model text not null,
  last_message bigint not null,
  last_edit bigint not null,
  prefix text not null references prefixes,
  params text not null,
  marks text not null,
  tail text,
  block_count integer not null,
  digest text not null,
  estimate bigint not null,
  max_tokens integer not null,
  reserved_usd numeric not null default 0,
  input_tokens bigint,
  output_tokens bigint,
  cache_read_tokens bigint,
  cache_write_5m_tokens bigint,
  cache_write_1h_tokens bigint,
  reasoning_tokens bigint,
  cost_usd numeric,
  cost_assumed boolean not null default false,
  rate_source text,
  refund text,
  error_code text,
  error_text text,
  request_id text,
  stop_reason text,
  first_token_ms integer,
  holder uuid not null,
  fence bigint not null,
  created_at timestamptz not null default clock_now(),
  ended_at timestamptz,
  constraint ended_when_not_reserved check ((status = 'reserved') = (ended_at is null))
) with (fillfactor = 70);
create unique index calls_one_answer_a_step on calls (turn, step) where purpose = 'main' and status = 'settled';
create unique index calls_one_reserved_a_turn on calls (turn) where status = 'reserved';
create index calls_of_turn on calls (turn, seq);
create index calls_of_session on calls (session, seq);

create table tool_runs (
  turn uuid not null references turns,
  step integer not null,
  ordinal integer not null,
  session uuid not null references sessions,
  call_id text not null,
  tool text not null,
  arguments text not null,
  digest text not null,
  repeat text not null check (repeat in ('repeatable', 'keyed', 'checkable', 'once')),
  status text not null
    check (status in ('asked', 'approved', 'denied', 'started', 'done', 'failed', 'unknown', 'cancelled')),
  result text,
  is_error boolean not null default false,
  holder uuid,
  started_at timestamptz,
  may_run_until timestamptz,
  finished_at timestamptz,
  fence bigint not null,
  primary key (turn, step, ordinal)
) with (fillfactor = 70);

create table inbox (
  id bigint primary key default nextval('transcript_id'),
  session uuid not null references sessions,
  turn uuid references turns,
  dedupe_key text not null unique,
  kind text not null check (kind in ('input', 'steer', 'delivery')),
  author uuid not null references principals,
  payload text not null,
  stable_prefix_len integer,
  folded_into bigint references messages,
  folded_at timestamptz,
  created_at timestamptz not null default clock_now(),
  check ((folded_into is null) = (folded_at is null))
);
create index inbox_waiting on inbox (session, id) where folded_into is null;
create index inbox_of_turn on inbox (turn);

create table approvals (
  id uuid primary key,
  turn uuid not null references turns,
  session uuid not null references sessions,
  step integer not null,
  ordinal integer not null,
  tool text not null,
  digest text not null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'expired', 'void')),
  created_at timestamptz not null default clock_now(),
  expires_at timestamptz,
  decided_at timestamptz,
  decided_by uuid references principals,
  note text
);

create table workers (
  boot_id uuid primary key,
  kind text not null check (kind in ('worker', 'scheduler')),
  host text not null,
  pid integer not null,
  slots integer not null,
  classes text not null,
  lock_key bigint not null unique,
  started_at timestamptz not null default clock_timestamp(),
  beat_at timestamptz not null default clock_timestamp(),
  lease_until timestamptz not null,
  draining boolean not null default false,
  stopped_at timestamptz,
  stop_reason text
) with (fillfactor = 50);

create table budgets (
  scope text not null,
  id text not null,
  "window" text not null,
  cap_usd numeric not null check (cap_usd >= 0),
  spent_usd numeric not null default 0,
  reserved_usd numeric not null default 0,
  primary key (scope, id, "window")
);

create table ticks (
  id uuid not null unique,
  job uuid not null references jobs,
  instant timestamptz not null,
  manual boolean not null default false,
  turn uuid references turns,
  status text not null default 'due' check (status in ('due', 'started', 'done', 'failed', 'cancelled', 'skipped')),
  error_code text,
  error_text text,
  created_at timestamptz not null default clock_now(),
  ended_at timestamptz,
  primary key (job, instant)
);
create index ticks_open on ticks (job) where status in ('due', 'started');
create index ticks_of_turn on ticks (turn) where turn is not null;

create table deliveries (
  id uuid primary key,
  tick uuid not null references ticks (id),
  turn uuid not null references turns,
  kind text not null check (kind in ('session', 'file')),
  target text not null,
  status text not null default 'due' check (status in ('due', 'done', 'failed')),
  attempts integer not null default 0,
  next_at timestamptz not null default clock_now(),
  evidence text,
  error_text text,
  created_at timestamptz not null default clock_now(),
  ended_at timestamptz,
  unique (tick, kind, target)
);
create index deliveries_due on deliveries (next_at) where status = 'due';

create table idempotency (
  principal uuid not null references principals,
  key text not null check (length(key) between 1 and 200),
  route text not null,
  body_hash text not null,
  status integer,
  answer text,
  created_at timestamptz not null default clock_now(),
  primary key (principal, key)
);
create index idempotency_by_age on idempotency (created_at);

create table artifacts (
  id uuid primary key,
  session uuid not null references sessions,
  turn uuid references turns,
  cause text not null,
  media_type text not null default 'text/plain',
  body bytea not null,
  created_at timestamptz not null default clock_now()
);

create table message_search (
  message bigint primary key references messages,
  session uuid not null references sessions,
  words tsvector not null
);
create index message_search_words on message_search using gin (words);
create table message_search_mark (
  one boolean primary key default true check (one),
  indexed_below bigint not null default 0
);
insert into message_search_mark default values;

create table audit (
  id bigint primary key default nextval('transcript_id'),
  principal uuid,
  action text not null,
  subject text not null,
  detail text not null default '',
  created_at timestamptz not null default clock_now()
);

-- The seeds' table of (active, compacted), as a view: live (1,0), covered by a summary (0,1), rewound (0,0).
create view message_state as
select m.id, m.session,
       not rewound.is and not covered.is as active,
       not rewound.is and covered.is as compacted
from messages m
cross join lateral (
  select exists (
    select 1 from edits e where e.session = m.session and e.kind = 'rewind' and m.id between e.first and e.last
      and not exists (select 1 from edits r where r.session = e.session and r.kind = 'restore' and r.first = e.id)
  ) as is
) rewound
cross join lateral (
  select exists (
    select 1 from edits e where e.session = m.session and e.kind = 'summary' and m.id between e.first and e.last
      and not exists (
        select 1 from edits w where w.session = e.session and w.kind = 'rewind' and w.id > e.id and w.first <= e.last
          and not exists (select 1 from edits r where r.session = w.session and r.kind = 'restore' and r.first = w.id)
      )
  ) as is
) covered;

-- What work costs, does and delivers: calls, tool runs, the inbox, processes, ticks, deliveries, search, audit.
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
create index inbox_unread on inbox (created_at) where folded_into is null and kind <> 'input';
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

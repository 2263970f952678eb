-- Who may run: what the pick must know stands on the turn, so that it reads one table; what is shared and who writes it
-- to the provider's cache first; what an admin has stopped.
alter table turns add column job uuid references jobs, add column shared_key text;
create index turns_questions on turns (requested_by, admit_key, id) where status = 'queued' and class = 'interactive';
create index turns_sharing on turns (shared_key) where status = 'queued' and shared_key is not null;
create index principals_disabled on principals (id) where disabled_at is not null;
create index turns_finished on turns (finished_at) where finished_at is not null;

-- A prefix is known by its whole text, which names its session; what siblings share of it has a name of its own here.
-- `warm_until` is by clock_now, as all warmth; the deadline is by the real clock, as all that waits for the network.
create table shared_prefixes (
  key text primary key,
  warm_until timestamptz,
  leader uuid,
  leader_claim uuid,
  leader_deadline timestamptz,
  constraint leader_is_whole check ((leader is null) = (leader_claim is null) and (leader is null) = (leader_deadline is null))
) with (fillfactor = 70);
create index shared_prefixes_led on shared_prefixes (leader_deadline) where leader is not null;
alter table prefixes drop column warm_until, drop column leader_call, drop column leader_deadline;

create table stops (
  id uuid primary key,
  seq bigint not null default nextval('transcript_id') unique,
  scope text not null check (scope in ('fleet', 'person', 'job', 'profile', 'tool')),
  subject text,
  cancel boolean not null default false,
  note text not null default '',
  placed_by uuid not null references principals,
  created_at timestamptz not null default clock_now(),
  lifted_at timestamptz,
  lifted_by uuid references principals,
  constraint stop_has_subject check ((scope = 'fleet') = (subject is null)),
  constraint a_tool_is_no_tree check (not (scope = 'tool' and cancel)),
  constraint lifted_by_someone check ((lifted_at is null) = (lifted_by is null))
);
create index stops_standing on stops (scope, subject) where lifted_at is null;

-- What schedulers have counted, each process its own rows, so that writing one twice counts once. Those of processes
-- that are long gone are added up under 00000000-…. The API, which serves the metrics, sums.
create table counters (
  boot uuid not null,
  name text not null check (length(name) between 1 and 100),
  value bigint not null check (value >= 0),
  written_at timestamptz not null default clock_timestamp(),
  primary key (boot, name)
) with (fillfactor = 70);

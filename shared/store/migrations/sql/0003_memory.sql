-- What the team and each person have written down for later conversations. The head of a scope is its newest revision;
-- who writes locks it, so that two sessions that write at once come one after the other.
create table memories (
  scope text primary key,
  owner uuid references principals,
  revision integer not null default 0 check (revision >= 0),
  entries text not null default '[]',
  updated_at timestamptz not null default clock_now(),
  constraint memory_has_owner check (
    case when owner is null then scope = 'team' else scope in ('person:' || owner, 'profile:' || owner) end)
);

-- Each change: what it took out, what it put in, what the scope held afterwards; by whose word, and from which run. A
-- compaction's has no ordinal: it is no run, and stands or falls with the edit of its transaction.
create table memory_revisions (
  scope text not null references memories,
  revision integer not null check (revision > 0),
  action text not null check (action in ('add', 'replace', 'remove', 'set')),
  taken text,
  put text,
  entries text not null,
  author uuid not null references principals,
  session uuid references sessions,
  turn uuid references turns,
  step integer,
  ordinal integer,
  fence bigint,
  created_at timestamptz not null default clock_now(),
  primary key (scope, revision),
  constraint memory_run_key unique (turn, step, ordinal),
  constraint memory_of_a_run check (
    num_nulls(session, turn, step, fence) in (0, 4) and (ordinal is null or session is not null))
);
create trigger memory_revisions_fence before insert on memory_revisions for each row
when (new.session is not null) execute function check_fence();
create trigger memory_revisions_append_only before update or delete on memory_revisions for each row
execute function refuse_change();
create trigger memory_revisions_no_truncate before truncate on memory_revisions for each statement
execute function refuse_change();

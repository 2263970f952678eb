-- Why a person is asked, and what their yes may cover beside this one call: nothing where `patterns` is empty.
alter table approvals
  add column rule text not null default 'settings',
  add column why text,
  add column patterns text[] not null default '{}',
  add column scope text check (scope in ('once', 'session', 'always')),
  add constraint approval_scope check (scope is null or status = 'approved');

-- What was allowed beyond one call. A grant holds for the principal whose turn got it and for its patterns alone: in one
-- session, or wherever that principal asks. `bypass` opens one session for a time to whatever only a pattern asks about;
-- never to the floor, the deny list, what steers, or what is not understood. Nothing is deleted: a grant ends by a mark.
create table grants (
  id uuid primary key,
  scope text not null check (scope in ('session', 'always', 'bypass')),
  principal uuid references principals,
  session uuid references sessions,
  patterns text[] not null,
  approval uuid unique references approvals,
  granted_by uuid not null references principals,
  note text,
  created_at timestamptz not null default clock_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  revoked_by uuid references principals,
  constraint grant_holder check ((scope = 'bypass') = (principal is null)),
  constraint grant_place check ((scope = 'always') = (session is null)),
  constraint grant_patterns check ((scope = 'bypass') = (cardinality(patterns) = 0)),
  constraint bypass_ends check (scope <> 'bypass' or expires_at is not null),
  constraint grant_revoked check ((revoked_at is null) = (revoked_by is null))
);
create index grants_of_principal on grants (principal) where revoked_at is null;
create index grants_of_session on grants (session) where scope = 'bypass' and revoked_at is null;

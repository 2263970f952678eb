-- Search over every message: words and pairs of characters in `words`, what stands inside a word by trigrams over `folded`,
-- the first 64 kB as a person reads them, without capitals (ILIKE would fold each text again at each search). `made_by` is the version of the cut (shared/words.py): what an older one made,
-- a scheduler of the release before included, is made again by the indexer, in its bounded batches.
create extension if not exists pg_trgm;

alter table message_search
  add column folded text not null default '',
  add column made_by integer not null default 0;
create index message_search_old on message_search (message) where made_by = 0;

-- pg_trgm may have been installed by somebody else, into a schema that is not on our path.
do $$
declare place text;
begin
  select n.nspname into strict place from pg_extension e join pg_namespace n on n.oid = e.extnamespace
  where e.extname = 'pg_trgm';
  execute format('create index message_search_folded on message_search using gin (folded %I.gin_trgm_ops)', place);
end $$;

create index message_search_of_session on message_search (session);

-- Who sees few sessions is searched through those alone.
create index sessions_of_team on sessions (id) where audience = 'team';
create index session_people_of on session_people (principal);

-- What was taken back is left out of every search by these few rows alone; a session may have thousands of stubs.
create index edits_taken_back on edits (session, first) where kind in ('rewind', 'restore');

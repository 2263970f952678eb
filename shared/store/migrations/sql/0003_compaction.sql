-- What a summary leaves standing inside its range, and what came of a session's last compaction: the breaker and the
-- summariser's rest are columns, so that a restart forgets neither.
alter table edits add column kept bigint[];
alter table sessions
  add column compacted_at timestamptz,
  add column compact_last text check (compact_last in ('open', 'summary', 'fallback', 'dropped', 'nothing')),
  add column summary_after timestamptz,
  add column summary_failures integer not null default 0;

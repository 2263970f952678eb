alter table sessions
  drop column compacted_at, drop column compact_last, drop column summary_after, drop column summary_failures;
alter table edits drop column kept;

drop index edits_taken_back, session_people_of, sessions_of_team, message_search_of_session, message_search_folded,
  message_search_old;
alter table message_search drop column folded, drop column made_by;
do $$
begin
  drop extension if exists pg_trgm;
exception when insufficient_privilege or dependent_objects_still_exist then
  null;  -- it is somebody else's
end $$;

drop index edits_taken_back, message_search_body, message_search_old;
alter table message_search drop column body, drop column made_by;
do $$
begin
  drop extension if exists pg_trgm;
exception when insufficient_privilege or dependent_objects_still_exist then
  null;  -- it is somebody else's
end $$;

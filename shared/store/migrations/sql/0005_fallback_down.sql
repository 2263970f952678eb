-- Titles and probes: the older revision has no word for what such a call was for; it was a last one without tools.
drop index calls_one_title;
alter table calls drop constraint calls_purpose_check;
update calls set purpose = 'final' where purpose in ('title', 'probe');
alter table calls add constraint calls_purpose_check check (purpose in ('main', 'summary', 'final', 'ping'));
drop index sessions_untitled;
alter table sessions drop column titled;
alter table calls drop column bare;
alter table sessions drop column spoke;
alter table turns drop constraint turns_link;
alter table turns drop column out_since, drop column model, drop column provider;

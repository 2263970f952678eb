alter table calls drop constraint calls_purpose_check;
alter table calls add constraint calls_purpose_check check (purpose in ('main', 'summary', 'final', 'ping')) not valid;
alter table calls drop column bare;
alter table sessions drop column spoke;
alter table turns drop constraint turns_link;
alter table turns drop column out_since, drop column model, drop column provider;

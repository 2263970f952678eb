alter table calls drop column bare;
alter table sessions drop column spoke;
alter table turns drop constraint turns_link;
alter table turns drop column out_since, drop column model, drop column provider;

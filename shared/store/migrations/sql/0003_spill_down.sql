drop index artifacts_of_run;
alter table artifacts alter column body set storage extended;
alter table artifacts drop column step, drop column ordinal, drop column characters;

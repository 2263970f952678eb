alter table artifacts drop column came;
drop table backgrounds;

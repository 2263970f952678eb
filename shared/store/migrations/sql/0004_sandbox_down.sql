drop table backgrounds;

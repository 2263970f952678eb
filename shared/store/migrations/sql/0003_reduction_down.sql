drop table reductions;
alter table calls drop column projected;
alter table sessions drop column called_at, drop column regrow_to, drop column warm_pings, drop column keep_warm,
  drop column most_pings;

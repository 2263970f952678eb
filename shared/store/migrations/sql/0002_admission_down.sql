drop table counters;
drop table stops;
alter table prefixes add column warm_until timestamptz, add column leader_call uuid, add column leader_deadline timestamptz;
drop table shared_prefixes;
drop index principals_disabled, turns_questions, turns_sharing, turns_finished;
alter table turns drop column job, drop column shared_key;

drop table grants;
alter table approvals
  drop constraint approval_scope, drop column rule, drop column why, drop column patterns, drop column scope;

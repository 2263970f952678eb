drop view message_state;
drop table audit, message_search_mark, message_search, artifacts, idempotency, deliveries, ticks, budgets, workers,
  approvals, inbox, tool_runs, calls, edits, messages, turns, session_people, sessions, jobs, prefixes, tokens,
  principals cascade;
drop function check_turn();
drop function refuse_change();
drop function check_fence();
drop function clock_now();
drop table test_clock;
drop sequence transcript_id;

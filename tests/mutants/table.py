"""The table: each mutant, where it cuts, and the test that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands exactly `times` times in `file`; all of them become `new`."""

    name: str
    file: str
    old: str
    new: str
    red: str
    times: int = 1


FENCE_SQL = "shared/store/migrations/sql/0001_fence.sql"
TABLES_SQL = "shared/store/migrations/sql/0001_conversation.sql"
END = "shared/store/statements/turn_end.py"
STEP = "shared/store/statements/step.py"
FENCE_TEST = "tests/store/test_fence.py"
CLAIM_TEST = "tests/store/test_claims.py"
MEET_TEST = "tests/waiting/test_meetings.py"
CUT_TEST = "tests/steering/test_cut.py"
REPEAT_TEST = "tests/loop/test_repeats.py"
BROKEN_OFF_TEST = "tests/shrink/test_compaction_broken_off.py"
DIES_TEST = "test_a_worker_that_dies_at_a_summary_leaves_nothing_half"
LOST_TEST = "tests/loop/test_lost_commit.py"
MEMORY = "shared/store/statements/memory.py"
MEMORIES = "shared/store/memories.py"
WALLS_TEST = "tests/shrink/test_memory_walls.py"
MEMORY_TEST = "tests/shrink/test_memory_tool.py"
RECALL_TEST = "tests/shrink/test_recall_search.py"
REWIND_TEST = "tests/shrink/test_time_rewind.py"
BUDGET_TEST = "tests/waiting/test_budgets.py"
KEYS_TEST = "tests/manners/test_keys.py"
PROBES_TEST = "tests/loop/test_probes.py"
SATURATED_TEST = "tests/manners/test_saturated.py"
SCRIPT = "workers/manners/script.py"
BEDROCK_TEST = "tests/providers/test_bedrock.py"
FALLBACK_TEST = "tests/loop/test_fallback.py"
LOCK = "where id = new.session for no key update;\n  if held is distinct from new.fence then\n    raise"

MUTANTS = (
    Mutant(
        "fence lock: a plain SELECT in the trigger", FENCE_SQL,
        "create function check_fence() returns trigger language plpgsql as $$\ndeclare held bigint;\nbegin\n"
        "  select fence into held from sessions where id = new.session for no key update;",
        "create function check_fence() returns trigger language plpgsql as $$\ndeclare held bigint;\nbegin\n"
        "  select fence into held from sessions where id = new.session;",
        f"{FENCE_TEST}::test_a_late_row_waits_for_the_claim_that_is_under_way_and_is_then_refused",
    ),
    Mutant(
        "fence lock: FOR KEY SHARE in the trigger", FENCE_SQL,
        "begin\n  select fence into held from sessions where id = new.session for no key update;",
        "begin\n  select fence into held from sessions where id = new.session for key share;",
        f"{FENCE_TEST}::test_a_late_row_waits_for_the_claim_that_is_under_way_and_is_then_refused",
    ),
    Mutant(
        "no fence on messages", FENCE_SQL,
        "create trigger messages_fence before insert on messages for each row execute function check_fence();", "",
        f"{FENCE_TEST}::test_a_late_row_is_refused_once_the_fence_has_risen",
    ),
    Mutant(
        "fence rise at end: not at requeue", END,
        "update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s returning id, fence\n)\n"
        "update turns set status = 'queued'",
        "update sessions set fence = fence where id = %(session)s and fence = %(fence)s returning id, fence\n)\n"
        "update turns set status = 'queued'",
        f"{FENCE_TEST}::test_a_thawed_worker_cannot_write_into_a_turn_that_was_queued_again",
    ),
    Mutant(
        "fence rise at end: not at finish", END,
        "update sessions set fence = fence + 1 where id = %(session)s and fence = %(fence)s\n    and not exists",
        "update sessions set fence = fence where id = %(session)s and fence = %(fence)s\n    and not exists",
        f"{FENCE_TEST}::test_the_fence_rises_at_every_end_of_a_right_to_write",
    ),
    Mutant(
        "claim lock: SKIP LOCKED alone", "shared/store/statements/admission.py",
        "select pg_advisory_xact_lock(%(key)s)", "select %(key)s::bigint",
        f"{CLAIM_TEST}::test_a_principals_limit_holds_under_claims_that_race",
    ),
    Mutant(
        "claim: a locked session is waited for", "shared/store/statements/admission.py",
        "for no key update of s skip locked", "for no key update of s",
        f"{CLAIM_TEST}::test_a_session_whose_row_is_locked_is_passed_over",
    ),
    Mutant(
        "idle time-out off", "shared/store/migrate.py",
        '"idle_in_transaction_session_timeout": "5s"', '"idle_in_transaction_session_timeout": "0"',
        f"{FENCE_TEST}::test_a_frozen_holder_inside_a_transaction_blocks_its_rescue_for_seconds_only",
    ),
    Mutant(
        "unique step key dropped", TABLES_SQL,
        ",\n  constraint messages_step_key unique (turn, step, ordinal)", "",
        f"{FENCE_TEST}::test_a_call_is_recorded_once",
    ),
    Mutant(
        "one runner a session dropped", TABLES_SQL,
        "create unique index turns_one_holder on turns (session)", "create index turns_one_holder on turns (session)",
        f"{CLAIM_TEST}::test_two_turns_of_one_session_cannot_run_whatever_the_code_does",
    ),
    Mutant(
        "lost-COMMIT read: the answer is resent", "workers/recording.py",
        "recorded = ports.database.write(work, recover=recover)", "recorded = ports.database.write(work, recover=None)",
        f"{LOST_TEST}::test_a_turn_ends_once_whichever_commit_loses_its_reply",
    ),
    Mutant(
        "lost-COMMIT read: a lost claim is forgotten", "workers/claiming.py",
        "recover=recover)", "recover=None)",
        f"{LOST_TEST}::test_a_turn_ends_once_whichever_commit_loses_its_reply",
    ),
    Mutant(
        "a run that may happen once is run again", "workers/resuming.py",
        "case Repeat.ONCE:\n            return \"unknown\"", "case Repeat.ONCE:\n            return \"run\"",
        "tests/loop/test_resume.py::test_a_run_that_may_happen_once_and_was_started_is_unknown_not_repeated",
    ),
    Mutant(
        "a call that could not be read runs after a crash", "workers/resuming.py",
        "row[\"tool\"], row[\"arguments\"], unfit)", "row[\"tool\"], row[\"arguments\"])",
        "tests/loop/test_resume.py::test_a_call_that_could_not_be_read_does_not_run_after_a_crash_either",
    ),
    Mutant(
        "finishing does not look into the inbox", END,
        "\n    and not exists (\n      select 1 from inbox i where i.session = %(session)s and i.folded_into is null\n"
        "        and (i.kind <> 'input' or i.turn = %(turn)s) and i.kind not in ('rewind', 'restore', 'compact')\n"
        "        and (i.kind <> 'child' or not exists "
        "(select 1 from turns h where h.id = %(turn)s and h.class = 'chore'))\n    )", "",
        "tests/loop/test_turns.py::test_a_steer_that_arrives_while_the_last_answer_is_written_is_not_lost",
    ),
    Mutant(
        "an update of a running turn without the fence", FENCE_SQL,
        "if old.status = 'running' or new.status = 'running' then", "if false then",
        f"{FENCE_TEST}::test_an_update_of_a_running_turn_needs_the_fence",
    ),
    Mutant(
        "the pinned breakpoint is dropped", "shared/request/cache_plan.py",
        "            pinned = _at(request, state.last_breakpoint_message_id)\n",
        "            pinned = _at(request, None)\n",
        "tests/loop/test_prefix.py::test_a_step_of_many_blocks_still_reads_what_the_step_before_wrote",
    ),
    Mutant(
        "turn lock: a turn goes to sleep without it", "workers/waiting/park.py",
        "turn = one(connection, turn_end.LOCK_TURN, values)", "turn = one(connection, turn_end.LOCK_OWN, values)",
        f"{MEET_TEST}::test_a_decision_in_the_moment_in_which_the_turn_goes_to_sleep_is_not_lost",
    ),
    Mutant(
        "later-statement read: the wake locks in the statement that looks", "shared/store/waits.py",
        "    one(connection, turn_end.LOCK_TURN, {\"turn\": found[\"turn\"]})\n", "",
        f"{MEET_TEST}::test_of_two_decisions_at_the_same_moment_the_second_one_wakes",
    ),
    Mutant(
        "re-derived park: the sweep takes a sleeper's word", "shared/store/statements/waiting.py",
        "and t.parked_at < clock_now() - interval '5 seconds'", "and t.wake_at < clock_now()",
        "tests/waiting/test_sweep_parks.py::test_a_wake_that_was_lost_is_made_good_and_counted",
    ),
    Mutant(
        "dedupe key: each delivery is new", "shared/store/intake.py",
        "InboxKind.DELIVERY, author, payload, dedupe)", "InboxKind.DELIVERY, author, payload, f\"{dedupe}:{uuid7()}\")",
        f"{MEET_TEST}::test_a_delivery_that_comes_twice_stands_in_the_inbox_once",
    ),
    Mutant(
        "child counter: a child that ends is not counted down", "shared/store/statements/waiting.py",
        "greatest(p.children_open - case when c.background then 0 else 1 end, 0)", "p.children_open",
        f"{MEET_TEST}::test_two_children_that_end_at_the_same_moment_wake_their_parent_once",
    ),
    Mutant(
        "steering: a cut keeps no text", "workers/loop.py",
        "conversing.cut_short(held, planned, partial, partial.text, STEERED, refund)",
        "conversing.cut_short(held, planned, partial, \"\", STEERED, refund)",
        f"{CUT_TEST}::test_the_running_call_is_cut_and_what_was_said_stands_before_the_words",
    ),
    Mutant(
        "steering: a cut gives no step back", "workers/loop.py",
        "refund = Refund.STEER_CUT if planned.purpose is Purpose.MAIN else None", "refund = None",
        f"{CUT_TEST}::test_the_running_call_is_cut_and_what_was_said_stands_before_the_words",
    ),
    Mutant(
        "leader gate: nobody waits for the leader", "shared/store/statements/admission.py",
        "\n      and (t.shared_key is null or t.step > 0"
        " or t.shared_key <> all ((select gated from closed)::text[]))", "",
        "tests/acceptance/test_leader.py::test_ten_children_cost_one_write_of_what_they_share_and_nine_reads",
    ),
    Mutant(
        "yielding: a child keeps the only slot to its end", "workers/loop.py",
        "if held.gives_way and claiming.question_may_run(ports):", "if False:",
        "tests/acceptance/test_flood.py::test_with_one_slot_a_question_is_answered_between_two_steps_of_a_child",
    ),
    Mutant(
        "admin stops: the claim does not ask for the fleet's", "shared/store/statements/admission.py",
        "and not (select fleet from closed) and w.principal", "and w.principal",
        f"{CLAIM_TEST}::test_what_an_admin_stopped_is_not_claimed_until_it_is_lifted",
    ),
    Mutant(
        "admin stops: a stopped tool runs", "workers/toolbatch.py",
        "    stop = held.stopped_tools.get(run.call.name)\n", "    stop = None\n",
        "tests/acceptance/test_flood.py::test_a_call_of_a_stopped_tool_is_refused_with_the_stop",
    ),
    Mutant(
        "keyed: each try of a run has a key of its own", "workers/tools/context.py",
        "f\"nightshift run {turn} {step} {ordinal}\"", "f\"nightshift run {turn} {step} {ordinal} {boottime()}\"",
        f"{REPEAT_TEST}::test_a_keyed_run_runs_again_under_the_same_key_and_has_its_effect_once",
    ),
    Mutant(
        "checkable: what has not happened yet runs at once", "workers/resuming.py",
        "return Wait(ParkReason.TIME, row[\"left_s\"]) if row[\"left_s\"] > 0 else _run(row, None, None)",
        "return _run(row, None, None)",
        f"{REPEAT_TEST}::test_nobody_believes_that_a_run_did_not_happen_while_it_still_may",
    ),
    Mutant(
        "launcher: what comes too late is begun", "workers/tools/launcher.py",
        "if boottime() >= begin_by:", "if False:",
        "tests/tools/test_late.py::test_a_launcher_that_stood_still_until_the_lease_was_over_begins_nothing",
    ),
    Mutant(
        "right to act: it comes back with the lease", "workers/grants.py",
        " if life.lapses == grant.lapses else 0.0", "",
        "tests/loop/test_late_worker.py::test_what_was_told_to_be_unknown_does_not_happen_when_its_worker_goes_on",
    ),
    Mutant(
        "memory walls: a person's own in every prompt", MEMORY, "s.audience = 'private' and m.scope in", "m.scope in",
        f"{WALLS_TEST}::test_two_people_and_every_tool_that_reads_let_no_canary_across",
    ),
    Mutant(
        "memory walls: the tool reads a person's own anywhere", MEMORIES,
        'if row["audience"] != Audience.PRIVATE:', 'if row["audience"] == "nobody":',
        f"{WALLS_TEST}::test_two_people_and_every_tool_that_reads_let_no_canary_across",
    ),
    Mutant(
        "memory walls: a private conversation writes the team's", MEMORIES,
        'if row["audience"] != Audience.TEAM:', 'if row["audience"] == "nobody":',
        f"{MEMORY_TEST}::test_what_is_said_somewhere_goes_no_further_than_its_readers",
    ),
    Mutant(
        "memory once: a repeated run writes again", MEMORIES, "        if done is not None:\n            return done\n",
        "",
        f"{MEMORY_TEST}::test_a_worker_that_dies_at_a_write_leaves_it_written_once",
    ),
    Mutant(
        "memory lock: two rewrites at once are not told apart", MEMORY, "where scope = %(scope)s for no key update",
        "where scope = %(scope)s", f"{MEMORY_TEST}::test_two_sessions_that_write_at_once_both_survive_or_one_is_told",
    ),
    Mutant(
        "time travel: a breakpoint where nothing like it was sent", "workers/anchoring.py",
        "if digests.get(call.block_count) == call.digest]", "if call.block_count in digests]",
        f"{REWIND_TEST}::test_where_the_past_before_the_cut_was_edited_since_nothing_is_pinned_that_was_never_sent",
    ),
    Mutant(
        "time travel: a rewind that was cancelled is done by the next turn", "shared/store/statements/inbox.py",
        "i.kind = 'compact' and exists (select 1 from turns o where o.id = i.turn and o.status = 'queued')", "true",
        f"{REWIND_TEST}::test_a_rewind_whose_turn_was_cancelled_is_not_done_by_anybody",
    ),
    Mutant(
        "time travel: a rewind while a turn lives", "shared/store/asked.py",
        "    if busy is not None:", "    if False:",
        "tests/api/test_asked.py::test_while_a_turn_lives_nothing_is_taken_back_or_brought_back",
    ),
    Mutant(
        "time travel: a summary speaks for what came back after it", "shared/request/edits.py",
        "    return rewind.restored is not None and rewind.restored > summary.id and rewind.touches(summary)",
        "    return False",
        "tests/store/test_message_state.py::test_the_view_and_the_projection_agree_on_what_stands_after_any_edits",
    ),
    Mutant(
        "compaction: an attempt that was not proved does not hold", "workers/compaction/breaker.py",
        "now >= attempt.at + WINDOW or _proved", "now >= attempt.at or _proved", f"{BROKEN_OFF_TEST}::{DIES_TEST}",
    ),
    Mutant(
        "compaction: a summary is cut by words", "workers/conversing.py", "held.calling(steerable=not aside)",
        "held.calling()",
        f"{BROKEN_OFF_TEST}::test_words_that_come_during_a_summary_do_not_cut_it_and_are_read_after_it",
    ),
    Mutant(
        "compaction: reasoning behind an edit is kept", "shared/request/edits.py",
        "return later == len(self.edit_ids) or message < self.lost_from[later]", "return later >= 0",
        "tests/shrink/test_compaction_signed.py::test_the_model_accepts_the_epoch_that_an_edit_begins",
    ),
    Mutant(
        "compaction: the edit of who lost the turn stands", "shared/store/statements/compaction.py",
        "    %(tokens_after)s, fence\n  from sessions where id = %(session)s and fence = %(fence)s",
        "    %(tokens_after)s, fence\n  from sessions where id = %(session)s",
        f"{BROKEN_OFF_TEST}::test_a_worker_that_lost_its_turn_after_the_summary_was_paid_writes_no_edit",
    ),
    Mutant(
        "compaction: a lost reply writes the summary again", "workers/fence.py",
        "return None if landed is None else every(connection, landed, params) or None", "return None",
        "tests/shrink/test_compaction_lost_commit.py",
    ),
    Mutant(
        "time travel: a summary tells what was taken back behind it", "shared/request/edits.py",
        "rewind.restored is None and rewind.first < summary.id", "rewind.restored is None and rewind.touches(summary)",
        f"{REWIND_TEST}::test_a_summary_whose_writer_had_read_what_is_taken_back_is_void_though_it_ends_before_it",
    ),
    Mutant(
        "recall: one of the readers is enough", "shared/store/statements/recall.py",
        "where r.who <> s.owner and not (s.audience = 'people' and exists (",
        "where false and not (s.audience = 'people' and exists (",
        f"{RECALL_TEST}::test_a_session_finds_what_each_of_its_readers_may_see",
    ),
    Mutant(
        "recall: what was taken back is found", "shared/store/statements/recall.py",
        "f.message between w.first and w.last)", "f.message < 0)",
        f"{RECALL_TEST}::test_what_was_taken_back_is_gone_at_once_and_back_when_that_is_undone",
    ),
    Mutant(
        "recall: a child reads what a file names", "shared/store/statements/recall.py",
        "g.author not in ('tool', 'child')", "true",
        "tests/shrink/test_recall_tools.py::test_a_child_reads_its_own_and_what_was_given_to_it",
    ),
    Mutant(
        "reduction: a prune takes what it gets while the prefix is warm", "workers/reduction/decide.py",
        "sizes.drop >= WARM_LEAST and sizes.prompt >= state.regrow_to", "sizes.drop > 0",
        "tests/shrink/test_reduction_decide.py::test_nothing_is_pruned_while_warm_for_less_than_four_thousand_tokens",
    ),
    Mutant(
        "reduction: the stubs of who lost the turn stand", "shared/store/statements/reduction.py",
        "  where s.id = %(session)s and s.fence = %(fence)s\n  order by x.n",
        "  where s.id = %(session)s\n  order by x.n",
        "tests/shrink/test_reduction_prune.py::test_a_holder_that_lost_its_right_writes_no_stub",
    ),
    Mutant(
        "reduction: what nobody has answered yet is stubbed", "workers/reduction/sizes.py",
        "    start = min(max(of_messages, of_tokens), tally.answered)\n", "    start = max(of_messages, of_tokens)\n",
        "tests/shrink/test_reduction_stubs.py::test_what_nobody_has_answered_yet_is_not_touched_however_much_it_is",
    ),
    Mutant(
        "overlap: a read goes beside the write before it", "workers/tools/segments.py",
        "_any_overlap(one.writes, (*other.reads, *other.writes)) or _any_overlap(other.writes, one.reads)",
        "_any_overlap(one.writes, other.writes)",
        "tests/tools/test_batches.py::test_a_thousand_random_batches_end_as_one_call_after_the_other_would",
    ),
    Mutant(
        "overlap: links are not resolved", "workers/tools/areas.py",
        "os.path.realpath(root.joinpath(*parts))", "os.path.abspath(root.joinpath(*parts))",
        "tests/tools/test_batches.py::test_two_names_of_one_folder_are_one_place",
    ),
    Mutant(
        "overlap: whoever makes a folder meets nobody", "workers/tools/areas.py",
        "place.parts[:missing])", "place.parts)",
        "tests/tools/test_batches.py::test_whoever_makes_a_folder_meets_who_looks_beside_it",
    ),
    Mutant(
        "snapshot: a session has whatever its worker carries", "workers/claiming.py",
        "            if row[\"prefix\"] is None\n", "            if True\n",
        "tests/loop/test_snapshot.py::test_a_tool_that_comes_late_is_a_sessions_from_its_next_epoch_on",
    ),
    Mutant(
        "circling: the next holder begins to count anew", "workers/loop.py",
        "    if held.step > 0:\n        held.circle", "    if False:\n        held.circle",
        "tests/loop/test_circling.py::test_the_next_holder_comes_to_the_same_end",
    ),
    Mutant(
        "outward: a message goes where others read along", "shared/store/outward.py",
        "        if not row[\"fits\"]:", "        if False:",
        "tests/loop/test_outward.py::test_a_message_reaches_nobody_who_may_not_read_where_it_comes_from",
    ),
    Mutant(
        "outward: what runs by itself schedules", "shared/store/outward.py",
        "    if row[\"by_kind\"] != PrincipalKind.PERSON:", "    if False:",
        "tests/loop/test_outward.py::test_what_runs_by_itself_schedules_nothing",
    ),
    Mutant(
        "patch: what another wrote meanwhile is lost", "workers/tools/patch.py",
        "            if _mark(os.fstat(fd)) != mark:", "            if False:",
        "tests/tools/test_patch.py::test_what_another_writes_between_the_read_and_the_write_is_not_lost",
    ),
    Mutant(
        "money: a block comes back unused", "shared/store/statements/budgets.py",
        "greatest(t.spent_usd - draws.from_usd, 0) as used", "0::numeric as used",
        f"{BUDGET_TEST}::test_what_a_turn_spends_is_booked_in_the_window_and_the_rest_of_its_block_comes_back",
    ),
    Mutant(
        "money: what a dead worker had drawn stays drawn", "shared/store/statements/budgets.py",
        "reserved_usd = greatest(b.reserved_usd - d.amount_usd, 0)", "reserved_usd = b.reserved_usd",
        f"{BUDGET_TEST}::test_what_a_dead_worker_had_drawn_comes_back_less_what_is_assumed_spent",
    ),
    Mutant(
        "money: a shared cap that is set meanwhile is not seen", STEP,
        "    and (%(call)s::uuid is null or %(budget_version)s::bigint = (select version from budget_rules))\n", "",
        f"{BUDGET_TEST}::test_a_first_cap_that_is_set_while_a_turn_runs_holds_from_its_next_call_on",
    ),
    Mutant(
        "money: who waits for a shared cap is woken without room", "shared/store/migrations/sql/0005_money.sql",
        "\n    and (t.short_of is null or budgets_have_room(t.id))", "",
        f"{BUDGET_TEST}::test_without_room_a_turn_waits_and_goes_on_when_the_cap_is_raised",
    ),
    Mutant(
        "money: each day has 24 hours", "shared/store/migrations/sql/0005_money.sql",
        "(date_trunc(period, at at time zone zone) + ('1 ' || period)::interval) at time zone zone",
        "(date_trunc(period, at at time zone zone) at time zone zone) + ('1 ' || period)::interval",
        f"{BUDGET_TEST}::test_where_clocks_go_forward_a_turn_over_midnight_draws_from_the_new_day",
    ),
    Mutant(
        "money: an unknown price fits under any cap", "workers/budget.py",
        "        if capped is None:\n", "        if True:\n",
        f"{BUDGET_TEST}::test_with_a_shared_cap_an_unknown_price_is_refused",
    ),
    Mutant(
        "bedrock: a past with calls goes out without tools", "shared/request/converse.py",
        "        tools = (NO_TOOL,)\n", "        pass\n",
        f"{BEDROCK_TEST}::test_a_past_with_calls_goes_out_with_a_tool_also_where_none_may_be_called",
    ),
    Mutant(
        "bedrock: the secret of an access key may be shown", "shared/providers/credentials.py",
        "return tuple(part for key in keys for part in aws.secrets_in(key))", "return tuple(keys)",
        f"{BEDROCK_TEST}::test_keys_are_of_the_environment_or_of_files_and_a_pool_of_them_has_both_kinds",
    ),
    Mutant(
        "bedrock: a clean end in the middle is an answer", "workers/providers/converse_reading.py",
        "        if self._reason is not None and not self._made.whole:", "        if not self._made.whole:",
        "tests/providers/test_wires_with_rehearsal.py::test_a_cut_stream_is_a_cut_with_what_was_said",
    ),
    Mutant(
        "money: what has no rate costs nothing", "workers/providers/prices.py",
        "        if rate is None:\n            return Cost(None",
        "        if rate is None:\n            continue\n            return Cost(None",
        "tests/providers/test_prices.py::test_tokens_in_a_bucket_without_a_rate_make_the_whole_cost_unknown",
    ),
    Mutant(
        "money: children are promised what their parent promised before", "workers/caps.py",
        "money.turn_reserved + money.promised", "money.turn_reserved",
        "tests/waiting/test_children_money.py::test_the_second_delegation_shares_what_the_first_left",
    ),
    Mutant(
        "money: a job that was resumed is held against its old runs", "shared/store/statements/schedule.py",
        "\n  and (%(since)s::timestamptz is null or k.created_at >= %(since)s)", "",
        "tests/scheduler/test_breakers.py::"
        "test_a_job_without_news_is_paused_says_why_and_goes_on_when_somebody_lets_it",
    ),
    Mutant(
        "trust, gate: a tool server that is allowed writes what steers", "shared/gate/served.py",
        "    if each_time is not None:\n", "    if each_time is not None and not allowed:\n",
        "tests/gate/test_served.py::test_what_is_said_in_it_is_decided_whoever_allows_the_tool",
    ),
    Mutant(
        "trust, gate: what is too long is not looked through and allowed", "shared/gate/served.py",
        "            clear = False\n", "",
        "tests/gate/test_served.py::test_what_cannot_be_looked_through_is_asked_about_each_time",
    ),
    Mutant(
        "trust, gate: a tool server says of itself that it may", "shared/mcp.py",
        'return "*" in config.allowed or tool in config.allowed',
        'return "*" in config.allowed or tool in config.allowed or tool in config.repeatable',
        "tests/gate/test_served.py::test_what_the_operator_allows",
    ),
    Mutant(
        "trust, gate: the bypass covers what is not understood", "shared/gate/decide.py",
        "if unclear and not policy.isolated and exact", "if unclear and not policy.patterns_off and exact",
        "tests/gate/test_decide.py::test_the_order_of_decisions",
    ),
    Mutant(
        "trust, gate: a principal without a session is somebody", "shared/gate/decide.py",
        "return who is not None and bool(who.principal) and bool(who.session)",
        "return who is not None and bool(who.principal)",
        "tests/gate/test_decide.py::test_without_identity_session_or_policy_the_answer_is_no",
    ),
    Mutant(
        "trust, hooks: a guard that fails is passed over", "workers/hooks.py",
        'return f"{failed}, and it is a guard" if hook.guard else None', "return None",
        "tests/tools/test_hooks.py::test_a_guard_that_fails_denies_and_another_is_passed_over",
    ),
    Mutant(
        "trust, hooks: a person is asked before a guard is", "workers/waiting/questions.py",
        "        if no is not None:\n            return no\n", "        del no\n",
        "tests/waiting/test_hooks.py::test_a_hook_denies_before_anybody_is_asked_and_a_guard_that_fails_denies",
    ),
    Mutant(
        "trust, sandbox: a file without a name takes no room", "workers/sandbox/watch.py",
        "if info.st_nlink == 0 and", "if info.st_nlink < 0 and",
        "tests/sandbox/test_disk.py::test_a_file_without_a_name_counts_once_while_it_is_open",
    ),
    Mutant(
        "trust, sandbox: a disk that fills is looked at in its turn", "workers/sandbox/watch.py",
        "        if now < self._next and not filling:", "        if now < self._next:",
        "tests/sandbox/test_disk.py::test_a_disk_that_fills_is_looked_at_at_once",
    ),
    Mutant(
        "trust, sandbox: a host of another profile is reached", "shared/sandbox/hosts.py",
        "if host and (not equals or (profile and whose == profile)):", "if host:",
        "tests/sandbox/test_hosts.py::test_which_hosts_a_profile_opens",
    ),
    Mutant(
        "trust, segments: a folder does not meet what is in it", "workers/tools/segments.py",
        "return one[:shorter] == other[:shorter]", "return len(one) == len(other) == shorter and one == other",
        "tests/tools/test_segments.py::test_a_batch_is_cut_where_order_matters",
    ),
    Mutant(
        "trust, segments: a call of which nobody can tell runs beside others", "workers/tools/segments.py",
        "            return max(1, len(taken))\n", "            call = Touched()\n",
        "tests/tools/test_segments.py::test_a_batch_is_cut_where_order_matters",
    ),
    Mutant(
        "trust, redaction: what streams is looked through delta by delta", "shared/redact.py",
        "        cut = self._beginnings.first_open(text)\n", "        cut = len(text)\n",
        "tests/secrets/test_streamed.py::test_a_key_that_comes_in_two_deltas_is_taken_out_wherever_it_is_cut",
    ),
    Mutant(
        "trust, redaction: a key is cut where its end looks like its beginning", "shared/redact.py",
        "                cut = max(cut, match.end())\n", "                pass\n",
        "tests/secrets/test_streamed.py::test_a_key_whose_end_is_its_beginning_is_not_cut_in_two",
    ),
    Mutant(
        "trust, redaction: a call goes out with the key in it", "workers/providers/arguments.py",
        "kept = REDACTOR.without_known(clean_text(text))", "kept = clean_text(text)",
        "tests/secrets/test_streamed.py::test_a_call_is_stored_shown_and_run_without_the_key",
    ),
    Mutant(
        "trust, claims: a turn leaves the worker that has its background", "shared/store/statements/admission.py",
        "t.id <> all ((select elsewhere from closed)::uuid[])", "true",
        "tests/store/test_claims_near.py::test_another_leaves_it_to_the_worker_that_has_it",
    ),
    Mutant(
        "trust, claims: a turn waits for its background for ever", "shared/store/statements/admission.py",
        "        or t.queued_at < clock_now() - interval '10 seconds')", "        )",
        "tests/store/test_claims_near.py::test_after_ten_seconds_anybody_claims_it",
    ),
    Mutant(
        "manners: a probe that waits is shut out by itself", "workers/routing.py",
        "fleet.still(one, probe=ticket.strikes > 0)", "fleet.still(one)",
        f"{PROBES_TEST}::test_a_probe_that_waits_for_its_turn_goes_out_after_it",
    ),
    Mutant(
        "manners: a probe that is not sent is kept", "workers/look.py",
        "        routing.unsent(ports, held)\n", "",
        f"{PROBES_TEST}::test_a_turn_that_is_short_of_money_gives_its_probe_back",
    ),
    Mutant(
        "manners: a flush forgets what workers know", SCRIPT,
        "if seen[at] > num(f[at]) then", "if false then",
        f"{KEYS_TEST}::test_a_flush_ends_no_rest_that_a_worker_knows_of_and_forgets_no_strike",
    ),
    Mutant(
        "manners: what was booked before a rest holds back what comes after it", SCRIPT,
        "if num(due) > till then", "if false then",
        f"{KEYS_TEST}::"
        "test_what_was_booked_before_a_rest_does_not_stand_and_the_first_call_after_it_waits_for_none_of_it",
    ),
    Mutant(
        "manners: booked calls go out into a window that is used up", SCRIPT,
        "if booked > 0 and not waited and one.hold > now then", "if false then",
        f"{KEYS_TEST}::test_where_a_window_has_nothing_left_what_is_booked_is_held_back_each_call_by_another_time",
    ),
    Mutant(
        "manners: each worker without Redis takes all that is left", "workers/manners/alone.py",
        "SLOWEST_MS) / share", "SLOWEST_MS)",
        f"{SATURATED_TEST}::test_without_redis_the_shares_of_all_workers_are_the_limit",
    ),
    Mutant(
        "titles: a model writes over what a person wrote", "shared/store/statements/titles.py",
        "s.id and sessions.titled = 'kept'", "s.id",
        "tests/loop/test_titles.py::test_what_a_person_wrote_is_never_written_over",
    ),
    Mutant(
        "titles: whoever takes the turn up again asks again", "shared/store/statements/titles.py",
        "titled = 'asked' as due", "titled in ('asked', 'kept') as due",
        "tests/loop/test_titles.py::test_a_worker_that_dies_at_it_leaves_the_first_line_and_no_second_call",
    ),
    Mutant(
        "titles: their call stands on the conversation", "shared/store/statements/step.py",
        "case when %(c_apart)s::text is not null then 0\n", "case when false then 0\n",
        "tests/loop/test_titles.py::"
        "test_the_first_answer_is_there_before_anybody_asks_for_a_title_and_then_one_small_call_does",
    ),
    Mutant(
        "titles: who speaks waits for the holder", "shared/store/statements/inbox.py",
        "for no key update skip locked\n", "for no key update\n",
        "tests/loop/test_titles.py::"
        "test_a_session_that_its_holder_has_locked_is_spoken_to_without_a_wait_and_named_the_next_time",
    ),
    Mutant(
        "switching: a script switches without --yes", "api/cli/switching.py",
        "    if yes:\n", "    if yes or not sys.stdin.isatty():\n",
        "tests/cli/test_switching.py::test_without_a_terminal_nothing_changes_until_yes_is_given",
    ),
    Mutant(
        "switching: any name is a model", "shared/providers/named.py",
        "    if _may_be_any(settings, provider) or", "    if True or _may_be_any(settings, provider) or",
        "tests/providers/test_named.py::"
        "test_a_stand_in_refuses_what_the_provider_that_it_stands_in_for_would",
    ),
    Mutant(
        "content: others read what was traced", "workers/tracing.py", "flags, 0o600", "flags, 0o644",
        "tests/telemetry/test_tracing.py::"
        "test_asked_for_each_call_is_a_file_that_only_its_owner_reads_without_keys",
    ),
    Mutant(
        "content: keys are written too", "workers/tracing.py", "REDACTOR.clean(text).text", "text",
        "tests/telemetry/test_tracing.py::"
        "test_asked_for_each_call_is_a_file_that_only_its_owner_reads_without_keys",
    ),
    Mutant(
        "fallback: a conversation asks by itself whether its model is back", "workers/routing.py",
        "if isinstance(got, Ticket) and got.strikes and held.spoke not in (None, str(link)):", "if False:",
        f"{FALLBACK_TEST}::"
        "test_a_model_that_lists_and_does_not_answer_costs_a_conversation_no_epoch_however_often_it_is_probed",
    ),
    Mutant(
        "fallback: another model reads on where the first one was", "workers/prefixing.py",
        "    if held.prefix is None or left is None or left == str(to):\n", "    if True:\n",
        f"{FALLBACK_TEST}::test_a_turn_goes_to_the_next_model_within_its_step_and_the_one_after_the_outage_is_back",
    ),
    Mutant(
        "fallback: a step that went elsewhere is counted twice", "workers/failing.py",
        "outcome = replace(outcome, refund=Refund.FAILOVER)", "pass",
        f"{FALLBACK_TEST}::test_what_fails_for_good_is_tried_once_and_another_model_does_it",
    ),
    Mutant(
        "cooldown: who comes while a probe is out is a probe too", "workers/manners/script.py",
        "  if strikes > 0 and probe > now and not mine then return math.min(probe - now, 1000), strikes, 3 end\n", "",
        "tests/manners/test_keys.py::test_a_key_that_is_left_alone_is_passed_over_and_probed_once",
    ),
    Mutant(
        "cooldown: who comes while a probe is out goes elsewhere", "workers/routing.py",
        "(probed and patient)", "(probed and False)",
        f"{FALLBACK_TEST}::test_while_one_turn_probes_the_others_wait_for_what_it_hears_and_stay_where_they_are",
    ),
    Mutant(
        "own keys: a job's run has its person's", "shared/providers/scopes.py",
        "    if job is not None:\n", "    if job_name:\n",
        "tests/manners/test_own_keys.py::test_a_turn_without_identity_has_the_teams_keys",
    ),
    Mutant(
        "own keys: any name alike opens a folder", "shared/providers/scopes.py",
        "if path.name == owner.name", "if path.name.lower() == owner.name.lower()",
        "tests/manners/test_own_keys.py::test_a_folder_is_found_by_its_whole_name_alone",
    ),
    Mutant(
        "own keys: two scopes share a name", "shared/providers/credentials.py",
        'whose = "" if self.owner is None else f"{self.owner.folder}/"', 'whose = ""',
        "tests/manners/test_own_keys.py::test_one_text_in_three_scopes_is_three_keys",
    ),
    Mutant(
        "own keys: the team's are never asked", "workers/providers/routes.py",
        "        if own and not self._settings.team_keys_stand_in:\n", "        if own:\n",
        "tests/loop/test_own_keys.py::test_own_keys_that_are_used_up_fall_to_the_teams_and_to_nobody_elses",
    ),
    Mutant(
        "own keys: housekeeping where others read has its owner's", "shared/store/statements/admission.py",
        "  case when t.class <> 'chore' or s.audience = 'private' and s.owner = t.requested_by then (\n",
        "  case when true then (\n",
        "tests/loop/test_own_keys.py::"
        "test_a_service_of_a_persons_name_and_housekeeping_where_others_read_have_the_teams",
    ),
    Mutant(
        "own keys: they fill the team's at the claim", "shared/store/statements/admission.py",
        "where h.provider is not null and not exists (\n        select 1 from own o where o.provider = h.provider "
        "and o.owner = h.owner)", "where h.provider is not null",
        "tests/store/test_claims.py::test_turns_on_keys_of_their_own_fill_those_and_not_the_teams",
    ),
)  # fmt: skip

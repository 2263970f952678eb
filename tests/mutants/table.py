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
LOST_TEST = "tests/loop/test_lost_commit.py"
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
        "        and (i.kind <> 'input' or i.turn = %(turn)s)\n        and (i.kind <> 'child' or not exists "
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
        "    wanted = state.last_breakpoint_message_id\n", "    wanted = None\n",
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
        "\n      and (t.shared_key is null or t.step > 0 or t.shared_key <> all ((select gated from closed)::text[]))",
        "",
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
)  # fmt: skip

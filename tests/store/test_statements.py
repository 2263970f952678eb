"""Every named statement prepares, and on a large table its plan uses the indexes that it names."""

from __future__ import annotations

import importlib
import pkgutil
import re

import psycopg
import pytest

import shared.store.statements as package
from shared.store.statements import REGISTRY
from shared.transitions import LEGAL
from tests.store.conftest import Rows

for _module in pkgutil.iter_modules(package.__path__):
    importlib.import_module(f"{package.__name__}.{_module.name}")

FILL = """
insert into sessions (id, owner, provider, model, workspace)
  select gen_random_uuid(), %(p)s, 'anthropic', 'm', '/w' from generate_series(1, 3000);
insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, status, finished_at, answer)
  select gen_random_uuid(), s.id, 'interactive', %(p)s, now(), 60, 90, 'done', now(), ''
  from sessions s, generate_series(1, 10);
insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps)
  select gen_random_uuid(), s.id, 'interactive', %(p)s, now(), 60, 90 from sessions s order by seq limit 500;
insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, status, parked_on, wake_at)
  select gen_random_uuid(), s.id, 'job', %(p)s, now(), 60, 90, 'parked', 'time', now() + interval '1 day'
  from sessions s order by seq offset 1000 limit 500;
insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, status, holder)
  select gen_random_uuid(), s.id, 'job', %(p)s, now(), 60, 90, 'running', gen_random_uuid()
  from sessions s order by seq offset 2000 limit 500;
insert into prefixes values ('p', '[]', 0, 0, '[]');
insert into messages (session, turn, step, ordinal, author, role, content, fence)
  select session, id, 1, 0, 'm', 'user', '[]', 0 from turns;
insert into inbox (session, turn, dedupe_key, kind, author, payload, folded_into, folded_at)
  select session, turn, 'k' || turn, 'input', %(p)s, '[]', id, now() from messages;
insert into calls (id, turn, session, step, purpose, status, provider, model, last_message, last_edit, prefix, params,
    marks, block_count, digest, estimate, max_tokens, holder, fence, ended_at)
  select gen_random_uuid(), id, session, 1, 'main', 'settled', 'a', 'm', 0, 0, 'p', '', '[]', 1, 'd', 1, 1, id, 0, now()
  from turns;
insert into tool_runs (turn, step, ordinal, session, call_id, tool, arguments, digest, repeat, status, fence)
  select id, 1, 1, session, 'c', 't', '{}', 'd', 'repeatable', 'done', 0 from turns;
insert into approvals (id, turn, session, step, ordinal, tool, digest, status, fence)
  select gen_random_uuid(), id, session, 1, 1, 't', 'd', case when status = 'parked' then 'pending' else 'void' end, 0
  from turns;
insert into questions (id, turn, session, step, ordinal, question, status, fence)
  select gen_random_uuid(), id, session, 1, 1, 'q', case when status = 'parked' then 'open' else 'void' end, 0
  from turns;
insert into backgrounds (turn, name, session, boot_id, host, may_run_until, fence)
  select id, 'p1.0', session, gen_random_uuid(), 'h', now(), 0 from turns;
insert into grants (id, scope, principal, session, patterns, granted_by)
  select gen_random_uuid(), 'session', %(p)s, id, '{x}', %(p)s from sessions;
update turns set parent = (select id from turns where status = 'done' limit 1), parent_step = 1, parent_ordinal = 1,
  child_index = seq where status = 'queued';
insert into jobs (id, name, owner, principal, cron, zone, prompt, next_at)
  select gen_random_uuid(), 'job ' || n, %(p)s, %(p)s, '* * * * *', 'UTC', 'p', now() + interval '1 day'
  from generate_series(1, 500) n;
insert into ticks (id, job, instant, turn, status, ended_at)
  select gen_random_uuid(), (select id from jobs limit 1), now() - row_number() over () * interval '1 second', id,
    'done', now() from turns where status = 'done' limit 5000;
insert into deliveries (id, tick, turn, kind, target, status, ended_at)
  select gen_random_uuid(), id, turn, 'file', 'x', 'done', now() from ticks;
insert into budgets (scope, id, "window", cap_usd)
  select 'person', n::text, '2026-11-30', 1 from generate_series(1, 500) n;
insert into draws (turn, scope, id, "window", amount_usd, from_usd)
  select id, 'person', (row_number() over () % 500 + 1)::text, '2026-11-30', 1, 0 from turns limit 5000;
insert into model_windows (provider, model, seen, errors, source, call, updated_at)
  select 'p', n::text, 4096, 1, 's', gen_random_uuid(), now() from generate_series(1, 500) n;
insert into workers (boot_id, kind, host, pid, slots, classes, lock_key, lease_until, stopped_at)
  select gen_random_uuid(), 'worker', 'h', 1, 1, '', n, now(), now() from generate_series(1, 500) n;
"""


@pytest.fixture
def full(rows: Rows) -> Rows:
    rows.connection.execute("set statement_timeout = 0")  # a crowd may take longer than the role gives
    for statement in FILL.split(";\n"):
        if statement.strip():
            rows.connection.execute(statement.replace("%(p)s", f"'{rows.person}'").encode())
    rows.connection.execute("analyze")
    rows.connection.execute("reset statement_timeout")
    return rows


def test_every_named_statement_prepares(rows: Rows) -> None:
    for statement in REGISTRY.values():
        rows.connection.execute(f"prepare p_{statement.name} as ".encode() + statement.numbered)


def test_every_statement_that_names_an_index_uses_it(full: Rows) -> None:
    """With sequential scans made dear, as they are on tables of millions: what then still scans has no index to use."""
    full.connection.execute("set enable_seqscan = off")
    full.connection.execute("set plan_cache_mode = force_generic_plan")
    missing: list[str] = []
    for statement in REGISTRY.values():
        if not statement.uses:
            continue
        full.connection.execute(f"prepare x_{statement.name} as ".encode() + statement.numbered)
        count = len(statement.parameters)
        arguments = f"({', '.join(['null'] * count)})" if count else ""
        plan = full.connection.execute(f"explain execute x_{statement.name}{arguments}".encode()).fetchall()
        shown = "\n".join(row[0] for row in plan)
        missing += [
            f"{statement.name}: {index}\n{shown}"
            for index in statement.uses
            if not any(name in shown for name in index.split("|"))
        ]
    assert not missing, "\n\n".join(missing)


def test_the_clock_keeps_its_index(full: Rows) -> None:
    plan = full.connection.execute(
        "explain select id from turns where status = 'parked' and wake_at <= clock_now()"
    ).fetchall()
    assert "turns_to_wake" in "\n".join(row[0] for row in plan)


def test_the_databases_law_of_turns_is_the_transition_table(rows: Rows) -> None:
    body = rows.value("select prosrc from pg_proc where proname = 'check_turn'")
    found = {tuple(re.findall(r"'(\w+)'", pair)) for pair in re.findall(r"\('\w+', '\w+'\)", body)}
    assert found == {(str(a), str(b)) for a, b in LEGAL}


def test_a_step_from_a_terminal_state_is_refused_by_the_database(rows: Rows) -> None:
    turn = rows.turn(rows.session())
    rows.connection.execute("update turns set status = 'cancelled', finished_at = now() where id = %s", (turn,))
    with pytest.raises(psycopg.DatabaseError) as refused:
        rows.connection.execute("update turns set status = 'queued', finished_at = null where id = %s", (turn,))
    assert refused.value.sqlstate == "NS003"

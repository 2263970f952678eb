"""A claim with 100,000 turns queued, by the product's own `claim_next`, in a database of its own; its plan is kept."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from shared.store.statements import admission
from tests.bench.aside import database
from tests.bench.figures import Figure, middle, quantile
from tests.bench.house import LIMIT, House
from tests.ground import CLASSES, Ground, ground
from workers import claiming

DATABASE = "bench_claims"
TRIES = 60
FEW: Mapping[str, int] = {"people": 10, "sessions": 10, "turns": 1}
MANY: Mapping[str, int] = {"people": 100, "sessions": 100, "turns": 10}
FILL = """
with people as (
  insert into principals (id, name, kind, role)
  select gen_random_uuid(), %(tag)s || n, 'person', 'member' from generate_series(1, %(people)s) n returning id
), made as (
  insert into sessions (id, owner, kind, profile, provider, model, workspace)
  select gen_random_uuid(), p.id, 'chat', 'default', 'anthropic', 'claude-sonnet-5-5', %(workspace)s
  from people p, generate_series(1, %(sessions)s) returning id, owner
)
insert into turns (id, session, status, class, requested_by, admit_key, max_steps, deadline_s)
select gen_random_uuid(), m.id, 'queued', (array['interactive', 'child', 'job'])[1 + m.place %% 3], m.owner,
  clock_now() + m.place %% 3 * interval '60 seconds' + (n + random()) * interval '1 second', 90, 7200
from (select id, owner, row_number() over () as place from made) m, generate_series(1, %(turns)s) n order by n
"""


def measure(house: House) -> list[Figure]:
    with database(house, DATABASE) as url, tempfile.TemporaryDirectory(prefix="ns-claims-") as folder:
        more: dict[str, Any] = {"principal_limit": LIMIT, "job_limit": LIMIT, "parent_limit": LIMIT}
        with ground(url, house.rig.facts["redis_url"], house.rig.provider.url, Path(folder), **more) as standing:
            _fill(standing, "few-", FEW)
            few = _claim(standing)
            _fill(standing, "many-", MANY)
            many = _claim(standing)
            queued = standing.one("select count(*) from turns where status = 'queued'")["count"]
            plan = _plan(url)
    used = [name for name in admission.CLAIM_PICK.uses if any(name in line for line in plan)]
    note = f"p95 {quantile(many, 0.95):.1f}, least {min(many):.1f}; {queued:,} queued, plan uses {', '.join(used)}"
    return [
        Figure(
            "claim_next with 100,000 turns queued", middle(many), "ms", middle(few), "with 100 queued", mark=5.0,
            note=note, detail={"each_ms": many, "few_ms": few, "plan": plan},
        )
    ]  # fmt: skip


def _fill(standing: Ground, tag: str, size: Mapping[str, int]) -> None:
    values = {**size, "tag": tag, "workspace": str(standing.home / "{session}")}
    with psycopg.connect(standing.settings.database_url, autocommit=True) as connection:
        connection.execute("set statement_timeout = '120s'")
        connection.execute(FILL.encode(), values)
        connection.execute("vacuum analyze turns")
        connection.execute("vacuum analyze sessions")


def _claim(standing: Ground) -> list[float]:
    each: list[float] = []
    for _ in range(TRIES):
        began = time.perf_counter()
        assert claiming.claim_next(standing.ports, CLASSES, uuid4()) is not None
        each.append((time.perf_counter() - began) * 1_000)
    return each[5:]


def _plan(url: str) -> list[str]:
    limits = {**admission.NO_LIMITS, "classes": [str(one) for one in CLASSES]}
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(f"explain (analyze, buffers) {admission.CLAIM_PICK.text}".encode(), limits).fetchall()
    return [row[0] for row in rows]

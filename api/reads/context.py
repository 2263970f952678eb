"""What the model sees of a session, measured: the floor, what stands, what was left out, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api.wire.context import (
    Context,
    Counted,
    Floor,
    FloorPart,
    Reduction,
    StandingRewind,
    StandingStub,
    StandingSummary,
)
from shared import models
from shared.models import Limits
from shared.request import blocks, canonical, estimate, projection
from shared.request import edits as edit_rules
from shared.request.assembled import Request
from shared.request.edits import Past
from shared.request.projection import Prefix
from shared.settings import Settings
from shared.store import transcript, windows
from shared.store.pool import Connection
from shared.values import EditKind

MOST_STUBS = 50
SESSION = """
select id, model, provider, prefix, baseline_estimate, baseline_billed, ineffective_strikes, fallback_streak,
  breaker_blocked_at
from sessions where id = %(session)s
"""
EDITS = """
select e.id, e.kind, e.cause, e.tokens_before, e.created_at, e.first, e.last, e.text, e.block, case
    when e.kind = 'rewind' then (
      select count(*) from messages m where m.session = e.session and m.id between e.first and e.last) end as messages
from edits e where e.session = %(session)s order by e.id
"""
# Of the two kinds of ranges that the model does not see, how many messages lie in each; a message counts once.
COUNTS = """
select (select count(*) from messages where session = %(session)s) as written, (
    select count(*) from (
      select m.id from unnest(%(first)s::bigint[], %(last)s::bigint[]) r(first, last)
      join messages m on m.session = %(session)s and m.id between r.first and r.last group by m.id
    ) gone) as rewound
"""
REDUCTIONS = """
select id, turn, step, decision, cause, arithmetic, tokens_before, tokens_after, first_edit, created_at
from reductions where session = %(session)s and id < %(before)s order by id desc limit %(limit)s
"""


@dataclass(frozen=True, slots=True)
class Part:
    """Of the floor; the weight in tokens as estimated."""

    name: str
    tokens: int


def find(connection: Connection, session: UUID, settings: Settings) -> Context:
    """As of one moment, of a session that has a prefix or has none yet. Inside a transaction."""
    rows = connection.cursor(row_factory=dict_row)
    row = rows.execute(SESSION, {"session": session}).fetchone()
    assert row is not None, "the caller has just seen it"
    edits = transcript.load_edits(connection, session)
    past, told = edit_rules.apply(edits), rows.execute(EDITS, {"session": session}).fetchall()
    standing = transcript.load_standing(connection, session, edits)
    prefix = None if row["prefix"] is None else transcript.load_prefix(connection, row["prefix"])
    request = None if prefix is None else projection.project(prefix, standing, edits)
    ranges = {"first": [first for first, _ in past.rewound], "last": [last for _, last in past.rewound]}
    counts = rows.execute(COUNTS, {"session": session, **ranges}).fetchone() or {"written": 0, "rewound": 0}
    live = len(standing)
    counted = Counted(
        live=live, rewound=counts["rewound"], summarised=counts["written"] - counts["rewound"] - live
    )  # fmt: skip
    limits = windows.limits(connection, settings, row["provider"], row["model"])
    return _shown(row, request, prefix, past, told, counted, settings, limits)


def reductions(connection: Connection, session: UUID, before: int, limit: int) -> list[DictRow]:
    """The newest below `before`."""
    values = {"session": session, "before": before, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(REDUCTIONS, values).fetchall()


def shown_reduction(row: DictRow) -> Reduction:
    arithmetic: Any = canonical.load_strict(row["arithmetic"])
    return Reduction(
        id=str(row["id"]), turn_id=row["turn"], step=row["step"], decision=row["decision"], cause=row["cause"],
        tokens_before=row["tokens_before"], tokens_after=row["tokens_after"],
        first_edit=None if row["first_edit"] is None else str(row["first_edit"]),
        arithmetic=arithmetic, created_at=row["created_at"],
    )  # fmt: skip


def floor_of(prefix: Prefix, model: str) -> list[Part]:
    """The parts of the floor. A tier is known by its length; a prefix of an older builder may have other blocks."""
    factor = estimate.factor(model)
    system = blocks.split(prefix.system_text) if prefix.system_text else ()
    names = [
        *(["stable"] if prefix.stable_length else []), *(["context"] if prefix.context_length else []), "volatile",
    ]  # fmt: skip
    parts = [
        Part("tools", round(estimate.weigh_floor("" if prefix.tools_text == "[]" else prefix.tools_text, ()) * factor))
    ]
    for at, block in enumerate(system):
        name = names[at] if len(system) <= len(names) and at < len(names) else "system"
        parts.append(Part(name, round(estimate.weigh_units([block.encode()]) * factor)))
    return parts


def advise(row: DictRow, floor_tokens: int, window: int, line: int) -> list[str]:
    """What a person should know, and can do. Pure."""
    said: list[str] = []
    if floor_tokens >= line:
        said.append(
            f"tools and system prompt alone take {floor_tokens / window:.0%} of the window: no reduction of what is "
            "said makes it small enough. Begin a new session with a model that has a larger window, a profile with "
            "fewer tools, or shorter context files (AGENTS.md and kin)."
        )
    if row["breaker_blocked_at"] is not None:
        said.append(
            f"automatic compaction is blocked since {row['breaker_blocked_at'].isoformat(timespec='seconds')} "
            f"({row['ineffective_strikes']} that did not help, {row['fallback_streak']} without the model): one more "
            "is tried after five minutes; /compact tries now, /rewind takes turns back."
        )
    return said


def _shown(
    row: DictRow, request: Request | None, prefix: Prefix | None, past: Past, told: Sequence[DictRow], counted: Counted,
    settings: Settings, limits: Limits,
) -> Context:  # fmt: skip
    model = row["model"]
    calibrated = row["baseline_billed"] is not None
    counts = 0 if request is None else estimate.estimate(request, model)
    tokens = counts
    if calibrated:
        tokens = estimate.projected((row["baseline_estimate"], row["baseline_billed"]), counts)
    share = tokens / counts if counts else 1.0
    line = models.room(limits, settings.max_output_tokens, calibrated=calibrated, share=settings.context_threshold)
    parts = [] if prefix is None else floor_of(prefix, model)
    floor = round(sum(part.tokens for part in parts) * share)
    by_id = {one["id"]: one for one in told}
    stubs = [
        one for one in told if one["kind"] == EditKind.STUB and past.standing(one["first"]) is edit_rules.Standing.LIVE
    ]
    return Context(
        session_id=row["id"], model=model, window=limits.window, window_known=limits.known,
        window_source=limits.source, line=line, tokens=tokens,
        estimate=counts, calibrated=calibrated,
        floor=Floor(
            tokens=floor, share=round(floor / limits.window, 4), over=floor >= line,
            parts=[FloorPart(name=part.name, tokens=round(part.tokens * share)) for part in parts],
        ),
        messages=counted, message_tokens=max(0, tokens - floor),
        summaries=[_summary(by_id[one.id], one.text, model, share) for one in past.summaries],
        stubs=len({(one["first"], one["block"]) for one in stubs}),
        newest_stubs=[
            StandingStub(message=str(one["first"]), block=one["block"], text=one["text"] or "")
            for one in stubs[-MOST_STUBS:]
        ],
        rewinds=[_rewind(by_id[one]) for one in past.rewinds], advice=advise(row, floor, limits.window, line),
    )  # fmt: skip


def _summary(edit: DictRow, text: str, model: str, share: float) -> StandingSummary:
    return StandingSummary(
        edit=str(edit["id"]), first=str(edit["first"]), last=str(edit["last"]),
        tokens=round(estimate.estimate_text(text, model) * share), text=text, cause=edit["cause"],
        tokens_before=edit["tokens_before"], created_at=edit["created_at"],
    )  # fmt: skip


def _rewind(edit: DictRow) -> StandingRewind:
    return StandingRewind(
        edit=str(edit["id"]), first=str(edit["first"]), last=str(edit["last"]), messages=edit["messages"],
        created_at=edit["created_at"],
    )  # fmt: skip

"""What a run delivers, as text: a Markdown file with a front matter, and a message that names job and run. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from shared.text import bounded, clean_text

MESSAGE_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class Waited:
    """A call that a person was asked about: `status` is what they said, `why` what it was asked for."""

    tool: str
    why: str | None
    status: str
    asked_at: datetime
    decided_at: datetime | None
    decided_by: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that ended. `cost_usd` None is unknown, never zero."""

    job: UUID
    name: str
    run: UUID
    turn: UUID
    session: UUID
    instant: datetime
    zone: str
    manual: bool
    status: str
    answer: str | None
    error_code: str | None
    error_text: str | None
    cost_usd: Decimal | None
    steps: int
    model: str
    rehearsal: bool
    unknown_effects: int = 0
    waited: tuple[Waited, ...] = ()


def file_name(name: str, run: UUID, instant: datetime) -> str:
    """Sorted by instant, unique by run, and safe on every file system."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "job"
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H%M%SZ}-{slug}-{run.hex[-8:]}.md"


def markdown(outcome: Outcome) -> str:
    """The file: a YAML front matter of JSON values (YAML reads them), then the answer, or what went wrong."""
    local = outcome.instant.astimezone(ZoneInfo(outcome.zone))
    facts: dict[str, object] = {
        "job": outcome.name,
        "job_id": str(outcome.job),
        "run": str(outcome.run),
        "turn": str(outcome.turn),
        "session": str(outcome.session),
        "due": local.isoformat(timespec="seconds"),
        "due_utc": f"{outcome.instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "zone": outcome.zone,
        "by_hand": outcome.manual,
        "status": outcome.status,
        "steps": outcome.steps,
        "cost_usd": None if outcome.cost_usd is None else float(outcome.cost_usd),
        "model": outcome.model,
        "rehearsal": outcome.rehearsal,
    }
    if outcome.unknown_effects:
        facts["unknown_effects"] = outcome.unknown_effects
    if outcome.waited:
        facts["waited_for_a_person"] = len(outcome.waited)
    if outcome.error_code:
        facts["error"] = outcome.error_code
    front = "\n".join(f"{key}: {json.dumps(clean_text(v) if isinstance(v, str) else v)}" for key, v in facts.items())
    return f"---\n{front}\n---\n\n{_body(outcome)}\n"


def message(outcome: Outcome) -> str:
    """What stands in the session that it goes to; bounded, since all of it stands in the run's own session."""
    local = outcome.instant.astimezone(ZoneInfo(outcome.zone)).isoformat(timespec="minutes")
    head = f"[job \u201c{outcome.name}\u201d, run {outcome.run}, due {local}: {outcome.status}]"
    return bounded(clean_text(f"{head}\n\n{_body(outcome)}"), MESSAGE_CHARS)


def _body(outcome: Outcome) -> str:
    parts = ["*Rehearsal: no model wrote this.*"] if outcome.rehearsal else []
    if outcome.answer and outcome.answer.strip():
        parts.append(clean_text(outcome.answer).strip())
    if outcome.error_code:
        parts.append(clean_text(f"This run failed ({outcome.error_code}): {outcome.error_text or 'no more is known'}."))
    elif outcome.status == "cancelled":
        parts.append("This run was cancelled.")
    elif not parts or outcome.answer is None or not outcome.answer.strip():
        parts.append("This run ended without text.")
    if outcome.unknown_effects:
        words = f"Of {outcome.unknown_effects} of this run's tool calls nobody knows whether they happened"
        parts.insert(int(outcome.rehearsal), f"{words}: their worker was lost. Look before anything is done again.")
    if outcome.waited:
        zone = ZoneInfo(outcome.zone)
        parts.append("\n".join(["What waited for a person:", *(f"- {_waited(one, zone)}" for one in outcome.waited)]))
    return "\n\n".join(parts)


def _waited(one: Waited, zone: ZoneInfo) -> str:
    """One line: the call, why it was asked about, how long, and what came of it."""
    asked = one.asked_at.astimezone(zone)
    why = f" ({clean_text(one.why)})" if one.why else ""
    if one.decided_at is None:
        return f"{one.tool}{why}: asked {asked:%H:%M}, not decided"
    until = one.decided_at.astimezone(zone)
    minutes = round((one.decided_at - one.asked_at).total_seconds() / 60)
    by = f" by {clean_text(one.decided_by)}" if one.decided_by else ""
    waited = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"{one.tool}{why}: asked {asked:%H:%M}, {one.status}{by} {until:%H:%M}, after {waited}"

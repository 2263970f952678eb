"""The conversation as a compaction looks at it: read whole from rows, with every entry's size as the provider would
bill it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared.request import blocks, estimate, projection
from shared.request import edits as edit_rules
from shared.request.assembled import Request
from shared.request.projection import EditRow, MessageRow, Prefix
from shared.store import transcript
from shared.store.pool import Connection
from shared.values import EditKind
from workers.compaction import span
from workers.compaction.fallback import Material
from workers.compaction.span import Span
from workers.held import Held
from workers.ports import Ports

PROVISIONAL = 2**61


@dataclass(frozen=True, slots=True)
class Seen:
    """`per_weight` turns an estimate's weight into tokens as billed; `tokens` is the prompt as projected."""

    request: Request
    rows: Sequence[MessageRow]
    edits: Sequence[EditRow]
    per_weight: float
    tokens: int

    @property
    def floor(self) -> int:
        """Tokens of tools and system prompt, which no reduction makes less."""
        return round(estimate.weigh_floor(self.request.tools_text, self.request.system) * self.per_weight)


def read(ports: Ports, held: Held, prefix: str) -> Seen:
    """From rows alone: what memory has of the request may lack what was just committed."""

    def work(connection: Connection) -> tuple[Prefix, list[MessageRow], list[EditRow]]:
        edits = transcript.load_edits(connection, held.claim.session)
        rows = transcript.load_standing(connection, held.claim.session, edits)
        return transcript.load_prefix(connection, prefix), rows, edits

    stored, rows, edits = ports.database.read(work)
    request = projection.project(stored, rows, edits)
    return Seen(request, rows, edits, per_weight(held), projected(held, request))


def per_weight(held: Held) -> float:
    """Anchored on the last bill, where there is one."""
    factor = estimate.factor(held.claim.model)
    return factor * held.baseline[1] / held.baseline[0] if held.baseline and held.baseline[0] else factor


def projected(held: Held, request: Request) -> int:
    return estimate.projected(held.baseline, estimate.estimate(request, held.claim.model))


def entries(seen: Seen) -> tuple[span.Entry, ...]:
    summaries = edit_rules.apply(seen.edits).summaries
    return span.entries(seen.request.pieces, seen.rows, summaries, seen.per_weight)


def of(seen: Seen, found: Span) -> Material:
    """What the summary replaces, for whoever has to say it without the model."""
    ranges = {(entry.first, entry.last) for entry in found.middle if entry.summary}
    replaced = {entry.first for entry in found.middle if not entry.summary}
    rows = {row.id: row for row in seen.rows if row.id in replaced}
    summaries = edit_rules.apply(seen.edits).summaries
    return Material(
        [piece for piece in seen.request.pieces if piece.id in rows],
        rows,
        [one.text for one in summaries if (one.first, one.last) in ranges],
    )


def begins_after(seen: Seen, found: Span) -> str | None:
    """How the request right behind the span begins, for the summariser to know where to stop; None where what follows
    is no words of anybody."""
    rows = {row.id for row in seen.rows}  # a summary has a newer id than what it stands for
    following = next((one for one in seen.request.pieces if one.id > found.last and one.id in rows), None)
    if following is None or following.role != "user":
        return None
    words = next((blocks.text_of(block) for block in following.blocks if blocks.kind(block) == "text"), "")
    return " ".join(words[:400].split())[:80] or None


def after(seen: Seen, found: Span, text: str, prefix: Prefix) -> Request:
    """The request as it will be once this summary stands, under a prefix that may be another."""
    summary = EditRow(PROVISIONAL, EditKind.SUMMARY, found.first, found.last, text=text, kept=list(found.kept) or None)
    edits = [*seen.edits, summary]
    if prefix.digest != edit_rules.apply(seen.edits).prefix:
        edits.append(EditRow(PROVISIONAL + 1, EditKind.PREFIX, prefix=prefix.digest))
    return projection.project(prefix, seen.rows, edits)

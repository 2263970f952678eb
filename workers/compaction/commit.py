"""What a compaction writes: that the breaker is shut, that an attempt begins, that nothing could be left out, the edit.
Each is one fenced statement; an edit with facts to remember is one transaction with them (decision 19)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.memory import limit
from shared.request import canonical
from shared.store import memories
from shared.store.memories import Flushed, Run
from shared.store.pool import Connection
from shared.store.statements import compaction as statements
from shared.store.statements import one
from shared.values import EventKind
from workers import fence
from workers.compaction import framed
from workers.compaction.breaker import Attempt, Last
from workers.compaction.span import Span
from workers.emit import emit
from workers.held import Held
from workers.pause import Point
from workers.ports import Ports
from workers.prefixing import Built, name_left_out
from workers.reduction.state import Context


@dataclass(frozen=True, slots=True)
class Row:
    """The session's row as a compaction begins. `fits`: a bill under the threshold has been seen since the last one."""

    now: datetime
    attempt: Attempt
    fits: bool
    summary_after: datetime | None
    summary_failures: int


@dataclass(frozen=True, slots=True)
class Why:
    """What every row and event about one decision says of it."""

    cause: str
    arithmetic: Mapping[str, object]
    tokens_before: int

    def params(self, held: Held, **more: object) -> dict[str, Any]:
        return {
            "step": held.step + 1, "cause": self.cause, "arithmetic": canonical.dump({**self.arithmetic, **more}),
            "tokens_before": self.tokens_before,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Edit:
    """A summary about to stand: its text is framed already. `rest_s` is how long the summariser is left alone; `facts`
    go into that `memory` with it. `regrow_to`: no prune while warm before the prompt has that many tokens again."""

    span: Span
    text: str
    prefix: Built
    last: Last
    tokens_after: int
    fallback: str | None = None
    rest_s: float = 0.0
    facts: tuple[str, ...] = ()
    memory: str | None = None
    regrow_to: int = 0


def read(ports: Ports, held: Held) -> Row:
    """Raises LeaseLost. The breaker's columns in `held.context` are the row's from here on."""
    own = {"session": held.claim.session, "fence": held.claim.fence}
    row = ports.database.read(lambda c: one(c, statements.STATE, own))
    if row is None:
        raise LeaseLost
    held.told(row["now"])
    held.context = replace(
        held.context,
        ineffective_strikes=row["ineffective_strikes"],
        fallback_streak=row["fallback_streak"],
        verdict_due=row["verdict_due"],
        breaker_blocked_at=row["breaker_blocked_at"],
    )
    last = Last(row["compact_last"]) if row["compact_last"] else None
    attempt = Attempt(row["compacted_at"], last)
    return Row(row["now"], attempt, row["fits"], row["summary_after"], row["summary_failures"])


def shut(ports: Ports, held: Held, why: Why, message: str, until: datetime) -> None:
    """The breaker is shut: since when stands on the row, and is told once."""
    params = why.params(held, why=message, until=until.isoformat())
    row = fence.write(ports, held, statements.SHUT, params)
    held.context = replace(held.context, breaker_blocked_at=row["breaker_blocked_at"])
    if row["fresh"]:
        _tell(ports, held, "blocked", why, None, message=message)


def begin(ports: Ports, held: Held, context: Context) -> None:
    """An attempt begins, with the counters as the breaker left them. Whoever dies at it leaves it `open`."""
    counters = {"ineffective_strikes": context.ineffective_strikes, "fallback_streak": context.fallback_streak}
    fence.write(ports, held, statements.BEGIN, counters)
    held.context = replace(context, breaker_blocked_at=None)


def nothing(ports: Ports, held: Held, why: Why, reason: str, *, failed: bool = False, rest_s: float = 0.0) -> None:
    """The past stays as it is. `failed`: the model was to make a summary and did not; it is left alone for `rest_s`."""
    params = {**why.params(held, why=reason), "failed": int(failed), "rest_s": rest_s}
    row = fence.write(ports, held, statements.NOTHING, params, landed=statements.NOTHING_STANDS)
    held.context = replace(held.context, verdict_due=True, fallback_streak=row["fallback_streak"])
    _tell(ports, held, "skipped", why, why.tokens_before, message=reason)


def edit(ports: Ports, held: Held, why: Why, new: Edit) -> int:
    """The edit's id. The epoch ends with it: the next request is read from rows."""
    decision = "skipped" if new.last is Last.DROPPED else "compact"
    span = new.span
    told: dict[str, object] = {"first": span.first, "last": span.last, "kept": list(span.kept), "middle": span.tokens}
    if new.fallback is not None:
        told["fallback"] = new.fallback

    def params(facts: Flushed) -> dict[str, Any]:
        return {
            **why.params(held, **told, **_of_memory(facts)), **new.prefix.params(), "first": span.first,
            "last": span.last, "kept": list(span.kept) or None, "tokens_after": new.tokens_after,
            "text": framed.remembered(new.text, facts.saved, facts.left), "decision": decision,
            "compact_last": new.last, "rest_s": new.rest_s, "last_edit": held.last_edit,
            "regrow_to": new.regrow_to,
        }  # fmt: skip

    row, facts = _stand(ports, held, new, params)
    held.adopt(new.prefix.digest, new.prefix.tools)
    held.new_epoch(row["last_edit"], region_end=row["edit"])
    held.context = replace(
        held.context, meter=0.0, compact_meter=0.0, junk_tokens=0, regrow_to=new.regrow_to, verdict_due=True,
        fallback_streak=row["fallback_streak"],
    )  # fmt: skip
    _tell(ports, held, decision, why, new.tokens_after, **told, **_of_memory(facts))
    name_left_out(ports, held, new.prefix)
    return row["edit"]


def _stand(ports: Ports, held: Held, new: Edit, params: Callable[[Flushed], dict[str, Any]]) -> tuple[DictRow, Flushed]:
    """What is to be remembered, then the summary that stands for where it was said: both or neither."""
    if new.memory is None or not new.facts:
        none = Flushed()
        return fence.write(ports, held, statements.COMMIT, params(none), landed=statements.COMMITTED), none
    claim, memory = held.claim, new.memory
    own = {"session": claim.session, "turn": claim.turn, "fence": claim.fence}
    place = Run(claim.session, claim.turn, held.step + 1, None, claim.fence)
    facts: list[Flushed] = []

    def work(connection: Connection) -> DictRow:
        with connection.transaction():
            facts[:] = [
                memories.flush(
                    connection, place, memory, new.facts, lambda kind: limit(ports.settings, kind),
                    from_jobs=ports.settings.memory_from_jobs,
                )
            ]  # fmt: skip
            ports.pauses.at(Point.FLUSHED)
            row = one(connection, statements.COMMIT, {**params(facts[0]), **own})
            if row is None:
                raise LeaseLost
        return row

    def recover(connection: Connection) -> DictRow | None:
        fence.confirm(connection, held)
        return one(connection, statements.COMMITTED, {**own, "last_edit": held.last_edit})

    return ports.database.write(work, recover=recover), facts[0]


def _of_memory(facts: Flushed) -> dict[str, object]:
    """For the row and the event: how many, and why not. No word of them."""
    told: dict[str, object] = {"remembered": len(facts.saved)} if facts.saved else {}
    if facts.refused:
        told["not_remembered"] = [code for _, code in facts.refused]
    return told


def _tell(ports: Ports, held: Held, decision: str, why: Why, tokens_after: int | None, **more: object) -> None:
    emit(
        ports, held, EventKind.CONTEXT_REDUCED, decision=decision, cause=why.cause, tokens_before=why.tokens_before,
        tokens_after=tokens_after, arithmetic={**why.arithmetic, **more},
    )  # fmt: skip

"""What a compaction writes: that the breaker is shut, that an attempt begins, that nothing could be left out, the edit.
Each is one fenced statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from shared.errors import LeaseLost
from shared.request import canonical
from shared.store.pool import Connection
from shared.store.statements import Statement, one
from shared.store.statements import compaction as statements
from shared.values import EventKind
from workers import fence
from workers.compaction.breaker import Attempt, Last
from workers.compaction.span import Span
from workers.emit import emit
from workers.held import Held
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

    def params(self, **more: object) -> dict[str, Any]:
        told = {**self.arithmetic, **more}
        return {"cause": self.cause, "arithmetic": canonical.dump(told), "tokens_before": self.tokens_before}


@dataclass(frozen=True, slots=True)
class Edit:
    """A summary about to stand: its text is framed already. `rest_s` is how long the summariser is left alone."""

    span: Span
    text: str
    prefix: Built
    last: Last
    tokens_after: int
    fallback: str | None = None
    rest_s: float = 0.0


def read(ports: Ports, held: Held) -> Row:
    """Raises LeaseLost. The breaker's columns in `held.context` are the row's from here on."""
    row = ports.database.read(lambda c: one(c, statements.STATE, _own(held)))
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
    params = why.params(why=message, until=until.isoformat())
    row = _write(ports, held, statements.SHUT, params)
    held.context = replace(held.context, breaker_blocked_at=row["breaker_blocked_at"])
    if row["fresh"]:
        _tell(ports, held, "blocked", why, None, message=message)


def begin(ports: Ports, held: Held, context: Context) -> None:
    """An attempt begins, with the counters as the breaker left them. Whoever dies at it leaves it `open`."""
    counters = {"ineffective_strikes": context.ineffective_strikes, "fallback_streak": context.fallback_streak}
    _write(ports, held, statements.BEGIN, counters)
    held.context = replace(context, breaker_blocked_at=None)


def nothing(ports: Ports, held: Held, why: Why, reason: str) -> None:
    _write(ports, held, statements.NOTHING, why.params(why=reason))
    held.context = replace(held.context, verdict_due=True)
    _tell(ports, held, "skipped", why, why.tokens_before, message=reason)


def edit(ports: Ports, held: Held, why: Why, new: Edit) -> int:
    """The edit's id. The epoch ends with it: the next request is read from rows."""
    decision = "skipped" if new.last is Last.DROPPED else "compact"
    told = {"first": new.span.first, "last": new.span.last, "kept": list(new.span.kept), "middle": new.span.tokens}
    without = {} if new.fallback is None else {"fallback": new.fallback}
    params = {
        **why.params(**told, **without), **new.prefix.params(), "first": new.span.first, "last": new.span.last,
        "kept": list(new.span.kept) or None, "text": new.text, "tokens_after": new.tokens_after, "decision": decision,
        "compact_last": new.last, "rest_s": new.rest_s, "last_edit": held.last_edit,
    }  # fmt: skip
    row = _write(ports, held, statements.COMMIT, params, landed=statements.COMMITTED)
    held.adopt(new.prefix.digest, new.prefix.tools)
    held.new_epoch(row["last_edit"], region_end=row["edit"])
    held.context = replace(
        held.context, meter=0.0, compact_meter=0.0, junk_tokens=0, regrow_to=0, verdict_due=True,
        fallback_streak=row["fallback_streak"],
    )  # fmt: skip
    _tell(ports, held, decision, why, new.tokens_after, **told, **without)
    name_left_out(ports, held, new.prefix)
    return row["edit"]


def _own(held: Held) -> dict[str, Any]:
    return {
        "session": held.claim.session, "turn": held.claim.turn, "fence": held.claim.fence, "step": held.step + 1,
    }  # fmt: skip


def _write(
    ports: Ports, held: Held, statement: Statement, params: Mapping[str, object], landed: Statement | None = None
) -> DictRow:
    """The one row of a fenced statement. One that may not be sent twice says how to see that it `landed`."""
    values = {**_own(held), **params}

    def work(connection: Connection) -> DictRow:
        row = one(connection, statement, values)
        if row is None:
            raise LeaseLost
        return row

    def recover(connection: Connection) -> DictRow | None:
        fence.confirm(connection, held)
        return None if landed is None else one(connection, landed, values)

    return ports.database.write(work, recover=recover)


def _tell(ports: Ports, held: Held, decision: str, why: Why, tokens_after: int | None, **more: object) -> None:
    emit(
        ports, held, EventKind.CONTEXT_REDUCED, decision=decision, cause=why.cause, tokens_before=why.tokens_before,
        tokens_after=tokens_after, arithmetic={**why.arithmetic, **more},
    )  # fmt: skip

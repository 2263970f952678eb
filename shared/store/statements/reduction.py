"""What a session's reductions are decided by, as columns of its row, and how a decision is written.

Lock order: the session row first, as in every statement of a holder.
"""

from __future__ import annotations

from shared.store.statements import named

CONTEXT_COLUMNS = """s.ttl, s.called_at, s.prefix_warm_until, s.meter, s.compact_meter, s.junk_tokens, s.wrote_tokens,
  s.hold_5m, s.hold_1h, s.regrow_to, s.warm_pings, s.keep_warm, s.ineffective_strikes, s.fallback_streak,
  s.verdict_due, s.breaker_blocked_at"""
"""Of `sessions` under the name `s`: what workers.reduction.state.of_row reads."""

CONTEXT_SET = """ttl = %(ttl)s, meter = %(meter)s, compact_meter = %(compact_meter)s, junk_tokens = %(junk_tokens)s,
    wrote_tokens = %(wrote_tokens)s, hold_5m = %(hold_5m)s, hold_1h = %(hold_1h)s, regrow_to = %(regrow_to)s,
    warm_pings = %(warm_pings)s, ineffective_strikes = %(ineffective_strikes)s, fallback_streak = %(fallback_streak)s,
    verdict_due = %(verdict_due)s, breaker_blocked_at = %(breaker_blocked_at)s"""
"""Of an `update sessions set …` by its holder: what Context.params gives. When the session was called is T1's alone."""

_OF_SESSION = " from sessions s where s.id = %(session)s"
CONTEXT = named("context", "select " + CONTEXT_COLUMNS + _OF_SESSION, "sessions_pkey")

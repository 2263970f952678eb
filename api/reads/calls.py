"""The bill of a turn, call by call."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import DictRow, dict_row

from api import problems
from api.answers import dollars
from api.reads.turns import failure
from api.wire.shown import Call, CallTokens
from shared.store.pool import Connection

OF_TURN = """
select id, seq, step, purpose, status, provider, model, input_tokens, output_tokens, cache_read_tokens,
  cache_write_5m_tokens, cache_write_1h_tokens, reasoning_tokens, cost_usd, cost_assumed, reserved_usd, rate_source,
  refund, error_code, error_text, stop_reason, request_id, first_token_ms, estimate, max_tokens, block_count, digest,
  created_at, ended_at
from calls where turn = %(turn)s and seq > %(after)s order by seq limit %(limit)s
"""
# Of a step that was called more than once, the call that was answered; else the newest.
OF_STEP = """
select id, digest from calls
where turn = %(turn)s and (%(step)s::int is null or step = %(step)s) and (%(call)s::uuid is null or id = %(call)s)
  and (purpose in ('main', 'final') or id = %(call)s)
order by step desc, status = 'settled' desc, seq desc limit 1
"""


def of_turn(connection: Connection, turn: UUID, after: int, limit: int) -> list[DictRow]:
    values = {"turn": turn, "after": after, "limit": limit}
    return connection.cursor(row_factory=dict_row).execute(OF_TURN, values).fetchall()


def of_step(connection: Connection, turn: UUID, step: int | None, call: UUID | None) -> DictRow:
    """`id` and `digest` of the call that stands for a step, of the last step where none is named. Raises Refused."""
    values = {"turn": turn, "step": step, "call": call}
    row = connection.cursor(row_factory=dict_row).execute(OF_STEP, values).fetchone()
    if row is None:
        raise problems.not_found()
    return row


def shown(row: DictRow) -> Call:
    return Call(
        id=row["id"],
        step=row["step"],
        purpose=row["purpose"],
        status=row["status"],
        provider=row["provider"],
        model=row["model"],
        tokens=_tokens(row),
        cost_usd=dollars(row["cost_usd"]),
        cost_assumed=row["cost_assumed"],
        reserved_usd=float(row["reserved_usd"]),
        rate_source=row["rate_source"],
        refund=row["refund"],
        error=failure(row["error_code"], row["error_text"]),
        stop_reason=row["stop_reason"],
        request_id=row["request_id"],
        first_token_ms=row["first_token_ms"],
        estimate=row["estimate"],
        max_tokens=row["max_tokens"],
        block_count=row["block_count"],
        digest=row["digest"],
        created_at=row["created_at"],
        ended_at=row["ended_at"],
    )


def _tokens(row: DictRow) -> CallTokens | None:
    """None where the provider said nothing of usage: unknown is not zero."""
    if row["input_tokens"] is None and row["output_tokens"] is None:
        return None
    short, long = row["cache_write_5m_tokens"] or 0, row["cache_write_1h_tokens"] or 0
    return CallTokens(
        input=row["input_tokens"] or 0,
        output=row["output_tokens"] or 0,
        cache_read=row["cache_read_tokens"] or 0,
        cache_write=short + long,
        cache_write_5m=short,
        cache_write_1h=long,
        reasoning=row["reasoning_tokens"] or 0,
    )

"""What was asked of a transcript as a whole, as it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from api import problems
from api.wire.context import Effect, Remembered, TranscriptRequest
from api.wire.shown import Failure
from shared.request import canonical
from shared.store import asked
from shared.store.pool import Connection
from shared.values import TurnStatus

_ENDED = {TurnStatus.CANCELLED: "cancelled", TurnStatus.FAILED: "failed"}


def find(connection: Connection, session: UUID, request: int) -> TranscriptRequest:
    """A request of a session that the caller may see. Raises Refused `not_found`."""
    row = asked.find(connection, session, request)
    if row is None:
        raise problems.not_found()
    return shown(row)


def shown(row: DictRow) -> TranscriptRequest:
    came: Any = canonical.load_strict(row["outcome"]) if row["outcome"] else {}
    return TranscriptRequest(
        id=str(row["id"]),
        kind=row["kind"],
        status=came.get("result") or _ENDED.get(row["turn_status"], "waiting"),
        turn_id=row["turn"],
        asked_by=row["author"],
        edit=_id(row["edit"]),
        first=_id(row["first"]),
        last=_id(row["last"]),
        tokens_before=row["tokens_before"] if row["tokens_before"] is not None else came.get("tokens_before"),
        tokens_after=row["tokens_after"] if row["tokens_after"] is not None else came.get("tokens_after"),
        note=_note(came),
        error=_error(row, came),
        created_at=row["created_at"],
        done_at=row["folded_at"],
    )


def effects(rows: Sequence[DictRow]) -> list[Effect]:
    return [
        Effect(
            turn_id=row["turn"], session_id=row["session"], step=row["step"], ordinal=row["ordinal"], tool=row["tool"],
            arguments=row["arguments"], status=row["status"], at=row["at"],
        )
        for row in rows[: asked.MOST_TOLD]
    ]  # fmt: skip


def remembered(rows: Sequence[DictRow]) -> list[Remembered]:
    return [Remembered(**row) for row in rows[: asked.MOST_TOLD]]


def _id(value: int | None) -> str | None:
    return None if value is None else str(value)


def _note(came: dict[str, Any]) -> str | None:
    if came.get("result") == "skipped":
        return came.get("message")
    return f"made without the model: {came['fallback']}" if came.get("fallback") else None


def _error(row: DictRow, came: dict[str, Any]) -> Failure | None:
    if came.get("result") == "refused":
        return Failure(code=came["code"], message=came["message"])
    if not came and row["turn_status"] == TurnStatus.FAILED:
        return Failure(code=row["error_code"], message=row["error_text"] or row["error_code"])
    return None

"""Changes by POST, each made once. The invariant: the effect and the answer that is remembered commit together.

A key is held by an advisory transaction lock, so a request that died in flight leaves nothing behind, and one that is
still in flight is seen as such. A POST without a key gets one of its own: it serves a lost connection alone.
Lock order: the key, then whatever the effect locks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from psycopg.rows import tuple_row
from starlette.responses import Response

from api import problems
from api.injected import Written
from api.services import Services
from shared.errors import NightshiftError, Refused
from shared.store.pool import Connection

TRY_KEY = "select pg_try_advisory_xact_lock(hashtextextended(%(key)s, 7231003))"
WAIT_FOR_KEY = "select pg_advisory_xact_lock(hashtextextended(%(key)s, 7231003))"
FIND = """
select route, body_hash, status, answer from idempotency
where principal = %(principal)s and key = %(key)s and created_at > clock_now() - interval '24 hours'
"""
REMEMBER = """
insert into idempotency (principal, key, route, body_hash, status, answer)
values (%(principal)s, %(key)s, %(route)s, %(hash)s, %(status)s, %(answer)s)
on conflict (principal, key) do update set route = excluded.route, body_hash = excluded.body_hash,
  status = excluded.status, answer = excluded.answer, created_at = clock_now()
"""
_OWN = "own:"
After = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is JSON. `after` runs once the transaction stands: a ring, a hint."""

    status: int
    text: str
    after: After | None = None
    replayed: bool = False

    def response(self) -> Response:
        media = problems.MEDIA_TYPE if self.status >= 400 else "application/json"
        headers = {"idempotent-replayed": "true"} if self.replayed else None
        return Response(self.text, self.status, headers, media)


def perform(services: Services, written: Written, effect: Callable[[Connection], Answer]) -> Answer:
    """Make the change once and give its answer, or the answer that was given before. Raises Refused."""
    key = _OWN + str(uuid4()) if written.key is None else f"key:{written.key}"
    values = {
        "principal": written.caller.principal.id, "key": key, "route": written.route,
        "hash": hashlib.sha256(written.raw).hexdigest(),
    }  # fmt: skip

    def work(connection: Connection, again: bool) -> Answer:
        with connection.transaction():
            _hold(connection, f"{values['principal']}:{key}", wait=again)
            if again or written.key is not None:
                found = _remembered(connection, values)
                if found is not None:
                    return found
            answer = _apply(connection, effect, keyed=written.key is not None)
            if answer.status != 429:  # "later" is not an answer to keep
                connection.execute(REMEMBER, {**values, "status": answer.status, "answer": answer.text})
        return answer

    answer = services.database.run(work)
    if answer.after is not None:
        answer.after()
    return answer


def _hold(connection: Connection, lock: str, *, wait: bool) -> None:
    """A repetition after a lost connection waits for the first try's transaction to end; another request does not."""
    if wait:
        connection.execute(WAIT_FOR_KEY, {"key": lock})
        return
    row = connection.cursor(row_factory=tuple_row).execute(TRY_KEY, {"key": lock}).fetchone()
    if row is None or not row[0]:
        raise Refused(
            "a request with this Idempotency-Key is still in flight: ask again in a moment",
            code="idempotency_in_flight", status=409,
        )  # fmt: skip


def _remembered(connection: Connection, values: Mapping[str, object]) -> Answer | None:
    row = connection.cursor(row_factory=tuple_row).execute(FIND, values).fetchone()
    if row is None:
        return None
    route, digest, status, text = row
    if (route, digest) != (values["route"], values["hash"]):
        raise Refused(
            "this Idempotency-Key was used for another request: take a new one",
            code="idempotency_key_reused", status=422,
        )  # fmt: skip
    return Answer(status, text, replayed=True)


def _apply(connection: Connection, effect: Callable[[Connection], Answer], *, keyed: bool) -> Answer:
    """The effect; under a client's key its refusal is an answer like any other, and what it had written is undone."""
    if not keyed:
        return effect(connection)
    try:
        with connection.transaction():
            return effect(connection)
    except NightshiftError as error:
        if error.status >= 500:
            raise
        text = problems.body(error.status, error.code, error.message, more=problems.more(error))
        return Answer(error.status, text)

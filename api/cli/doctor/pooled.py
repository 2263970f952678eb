"""Checks that the direct connection is one: what a session holds there must hold until it ends.

A transaction pooler gives each statement whichever backend is free. So: take a lock and set a variable, let other
connections occupy the backends, and look again on the first. Behind a pooler, a worker's life lock would come and go.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack

import psycopg

from api.cli.doctor.finding import Facts, Finding, failed, ok

OTHERS = 4
PATIENCE_S = 5
_MEND = (
    "give NIGHTSHIFT_DATABASE_DIRECT_URL the server's own address; a pooler in transaction mode is fine for"
    " NIGHTSHIFT_DATABASE_URL alone"
)


def direct(known: Facts) -> list[Finding]:
    if not known.direct_url:
        return []
    try:
        reason = _why_not_direct(known.direct_url)
    except psycopg.OperationalError as error:
        reason = f"the connection did not last: {str(error).strip().splitlines()[0] if str(error).strip() else error!r}"
    if reason:
        return [failed("direct connection", reason, _MEND)]
    return [ok("direct connection", "one backend throughout; lock and session variable stayed")]


def _connect(url: str) -> psycopg.Connection:
    # No prepared statements: behind a pooler they fail for a reason of their own, and hide what is looked for.
    return psycopg.connect(url, autocommit=True, connect_timeout=PATIENCE_S, prepare_threshold=None)


def _why_not_direct(url: str) -> str:
    """What gave the pooler away, or nothing."""
    key, nonce = secrets.randbits(31), secrets.token_hex(8)
    with ExitStack() as stack:
        first = stack.enter_context(_connect(url))
        mine = _backend(first)
        first.execute("select pg_advisory_lock(%s, %s)", (7_231, key))
        first.execute("select set_config('nightshift.doctor', %s, false)", (nonce,))
        for _ in range(OTHERS):
            other = stack.enter_context(_connect(url))
            other.execute("begin")
            if _backend(other) == mine:
                return f"two connections at once share backend {mine}: a pooler stands between"
        if (now := _backend(first)) != mine:
            return f"the backend changed from {mine} to {now} between two statements: a pooler stands between"
        kept = first.execute("select current_setting('nightshift.doctor', true)").fetchone()
        if kept is None or kept[0] != nonce:
            return "a session variable was lost between two statements: a pooler stands between"
        held = first.execute("select pg_advisory_unlock(%s, %s)", (7_231, key)).fetchone()
        if held is None or not held[0]:
            return "an advisory lock was lost between two statements: a pooler stands between"
    return ""


def _backend(connection: psycopg.Connection) -> int:
    row = connection.execute("select pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])

"""What a log would give away when something goes wrong with somebody's words in hand."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import psycopg
import pytest

from shared import logs

WORDS = "the-words-of-a-person"
REFUSED = (
    "insert into turns (id, session, class, requested_by, admit_key, deadline_s, max_steps, answer)"
    " values (%s, %s, 'job', %s, now(), 1, 5000, %s)"
)


def _refusal(database_url: str) -> psycopg.Error:
    """Postgres refuses a row, and quotes it."""
    some = "00000000-0000-0000-0000-000000000001"
    with (
        psycopg.connect(database_url, autocommit=True) as connection,
        pytest.raises(psycopg.errors.CheckViolation) as refused,
    ):
        connection.execute(REFUSED, (some, some, some, WORDS))
    with psycopg.connect(database_url, autocommit=True) as connection:
        told = connection.execute("show log_error_verbosity").fetchone()
    assert WORDS in str(refused.value)
    assert told == ("terse",)  # the server's own log
    return refused.value


def test_neither_kind_of_log_repeats_the_row_that_postgres_refused(database_url: str) -> None:
    error = _refusal(database_url)
    try:
        raise RuntimeError(WORDS) from error
    except RuntimeError as outer:
        info = (RuntimeError, outer, outer.__traceback__)
        ours = json.dumps(logs.told(None, "error", {"event": "turn.fault", "exc_info": outer}))
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "x.py", 1, "Exception in ASGI application", (), info)
        theirs = logs.alike().format(record)
    for line in (ours, theirs):
        assert WORDS not in line
        assert "RuntimeError" in line
        assert "CheckViolation 23514" in line  # what it was and where is still said
        assert "test_loose_tongues.py" in line


def test_a_process_that_configures_its_logs_uses_both() -> None:
    program = (
        "import logging, structlog; from shared import logs; logs.configure()\n"
        "try: raise ValueError('the-' + 'words')\n"
        "except ValueError as error:\n"
        "  structlog.get_logger('x').error('fault', exc_info=error)\n"
        "  logging.getLogger('uvicorn.error').error('fault', exc_info=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stderr.count("ValueError") == 2
    assert "the-words" not in done.stderr


def test_every_line_of_a_log_can_be_parsed_while_threads_and_libraries_write_at_once() -> None:
    program = (
        "import logging, threading, structlog; from shared import logs; logs.configure()\n"
        "def ours():\n"
        "  for at in range(2000): structlog.get_logger('x').info('line', at=at)\n"
        "def theirs():\n"
        "  for at in range(2000): logging.getLogger('psycopg.pool').warning('discarding %s\\nof %s', at, 'two')\n"
        "threads = [threading.Thread(target=made) for made in (ours, theirs, ours, theirs)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert len(lines) == 8000
    assert {tuple(sorted(line)) for line in lines} == {
        ("at", "event", "level", "timestamp"),
        ("event", "level", "logger", "timestamp"),
    }

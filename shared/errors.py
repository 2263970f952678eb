"""The error tree. Each error has a stable `code` and a sentence that says what happened and what to do.

NightshiftError
├── SettingsError        a setting is wrong; the process must not start (exit 78)
├── StoreError
│   ├── LeaseLost        the fence has moved on: stop, write nothing more
│   ├── CapReached       the reservation does not fit a cap
│   ├── SchemaMismatch   the database is newer or older than this code
│   └── StoreUnavailable the database did not answer within its bound
├── Refused              a request that cannot be honoured, with an HTTP status
└── ProviderError        the model provider did not answer as it should (workers.providers)
"""

from __future__ import annotations

WRONG_SETTINGS = 78
"""Exit code, EX_CONFIG of sysexits.h: a setting is wrong, and starting the process again would end the same way."""
FAILED = 1
"""Exit code: a part was not there. It may go better next time."""


class NightshiftError(Exception):
    """Base of the tree: `code` is stable, `message` is a sentence a person can act on."""

    code = "internal_error"
    status = 500

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status


class SettingsError(NightshiftError):
    code = "settings_invalid"


class StoreError(NightshiftError):
    code = "store_error"


class LeaseLost(StoreError):
    """Zero rows from a fenced statement: another holder has the session. Never "fine"."""

    code = "lease_lost"

    def __init__(self, message: str = "the session's fence has moved on; this worker holds it no longer") -> None:
        super().__init__(message)


class CapReached(StoreError):
    """A reservation that does not fit. `scope` is call, turn or session; `cap_usd` and `needed_usd` are dollars."""

    code = "cap_reached"
    status = 402

    def __init__(self, message: str, *, scope: str) -> None:
        super().__init__(message, code=f"{scope}_cap_reached")
        self.scope = scope


class SchemaMismatch(StoreError):
    code = "schema_mismatch"


class StoreUnavailable(StoreError):
    code = "database_unavailable"
    status = 503


class Refused(NightshiftError):
    """A request that is understood and not honoured."""

    code = "refused"
    status = 400


class ProviderError(NightshiftError):
    code = "provider_error"
    status = 502


def exit_code(error: NightshiftError) -> int:
    """With what a process that could not begin ends."""
    return WRONG_SETTINGS if isinstance(error, (SettingsError, SchemaMismatch)) else FAILED

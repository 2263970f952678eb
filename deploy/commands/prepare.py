"""Owns the stack's first task: the database is at the code's revision, and the admin's token in the home opens the API.

A process of its own, so the supervisor need not load the store.
"""

from __future__ import annotations

import sys

import psycopg

from deploy.local.explain import StackError
from deploy.local.home import open_home, secret
from shared.errors import SettingsError
from shared.settings import load
from shared.store import migrate, principals

ADMIN = "admin"


def main(argv: list[str]) -> int:
    code = migrate.main(argv)
    if code != 0:
        return code
    try:
        settings = load()
        token = secret(open_home(settings.home), "admin-token", principals.new_token)
        with psycopg.connect(settings.direct_url, connect_timeout=10) as connection:
            principals.ensure_admin(connection, ADMIN, token)
    except (SettingsError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    except psycopg.Error as error:
        print(f"The database refused the stack's own token: {error}", file=sys.stderr)
        return 1
    return 0

"""Owns `./dev psql`: a prompt, or one command, on this home's database. The password stands in no process list."""

from __future__ import annotations

import os
import subprocess
import sys

from psycopg.conninfo import conninfo_to_dict

from deploy.commands.database import database
from deploy.local.binaries import find_postgres
from deploy.local.explain import StackError
from shared.errors import NightshiftError

_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
}


def main(argv: list[str]) -> int:
    try:
        program = find_postgres().folder / "psql"
        with database() as url:
            parts = conninfo_to_dict(url)
            mine = {variable: str(parts[name]) for name, variable in _VARIABLES.items() if parts.get(name)}
            return subprocess.run([program, *argv], env={**os.environ, **mine}, check=False).returncode
    except KeyboardInterrupt:
        return 130
    except (NightshiftError, StackError) as error:
        print(error, file=sys.stderr)
        return 1

"""Owns `nightshift flower`: Flower on loopback, with a password, for its /metrics and /healthcheck are always open."""

from __future__ import annotations

import argparse
import os
import sys

from deploy.commands.checkout import become
from deploy.local.explain import StackError
from deploy.local.home import open_home, secret
from shared.errors import SettingsError
from shared.settings import load

DEFAULT_PORT = 5555


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="nightshift flower")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    asked = parser.parse_args(argv)
    try:
        settings = load()
        if not settings.redis_url:
            print("NIGHTSHIFT_REDIS_URL is not set: Flower watches a broker, so it needs its address.", file=sys.stderr)
            return 78
        password = secret(open_home(settings.home), "flower")
    except (SettingsError, StackError) as error:
        print(error, file=sys.stderr)
        return 78
    # In the environment, for arguments stand in the process list.
    environment = os.environ | {
        "CELERY_BROKER_URL": broker_url(settings.redis_url),
        "FLOWER_BASIC_AUTH": f"nightshift:{password}",
    }
    words = [sys.executable, "-m", "celery", "flower", "--address=127.0.0.1", f"--port={asked.port}"]
    print(
        f"nightshift flower ready http://127.0.0.1:{asked.port} (user nightshift, password in flower.secret)",
        flush=True,
    )
    return become(words, environment)


def broker_url(redis_url: str) -> str:
    """redis-py writes a socket as unix://, Kombu as redis+socket://."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=")

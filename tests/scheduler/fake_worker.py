"""A worker that holds a Life and claims turns, and does nothing with them: a real process to be killed and frozen."""

from __future__ import annotations

import json
import sys
from typing import Any
from uuid import uuid4

from shared import logs
from shared.errors import LeaseLost
from shared.life import Life
from shared.settings import load
from shared.store.pool import Connection, Database
from shared.store.statements import admission, one, run


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value, default=str) + "\n")
    sys.stdout.flush()


def main() -> None:
    settings = load()
    logs.configure()
    life = Life(settings, "worker", settings.slots, settings.classes)
    database = Database(settings.database_url, size=2, wait_s=5)
    assert life.start(60)
    _say({"boot": life.boot_id})
    held: list[dict[str, Any]] = []

    def claim(connection: Connection) -> dict[str, Any] | None:
        with connection.transaction():
            run(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
            values = {"classes": settings.classes.split(","), **admission.NO_LIMITS}
            picked = one(connection, admission.CLAIM_PICK, values)
            if picked is None:
                return None
            params = {"session": picked["session"], "turn": picked["id"], "holder": life.boot_id, "claim": uuid4()}
            return one(connection, admission.CLAIM, params)

    def append(turn: dict[str, Any], connection: Connection) -> bool:
        """Write a message as the holder that this process still believes to be."""
        connection.execute(
            "insert into messages (session, turn, step, ordinal, author, role, content, fence) "
            "values (%s, %s, 0, 0, 'model', 'assistant', '[]', %s)",
            (turn["session"], turn["turn"], turn["fence"]),
        )
        return True

    for command in sys.stdin:
        match command.strip():
            case "claim":
                turn = database.read(claim)
                held += [turn] if turn else []
                _say({"turn": turn["turn"] if turn else None})
            case "append":
                try:
                    _say({"appended": [database.read(lambda c, t=turn: append(t, c)) for turn in held]})
                except LeaseLost:
                    _say({"appended": "lease lost"})
            case "state":
                _say(
                    {
                        "claims": life.claims_allowed,
                        "may_act": life.may_act(),
                        "relocks": life.relocks,
                        "renewals": life.renewals,
                        "lapses": life.lapses,
                    }
                )
            case "stop":
                life.stop("drained")
                _say({"stopped": True})
            case _:
                _say({"unknown": command})


if __name__ == "__main__":
    main()

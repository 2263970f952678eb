"""People of one house, what their agents are told, and what of it went to the provider."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from deploy.local.servers import Servers
from shared import memory
from shared.memory import TEAM, Action, Change, Kind, Scope
from shared.store import memories, principals
from shared.values import PrincipalKind, Role
from tests.api.conftest import fresh_database
from tests.ground import Ground, Rehearsal, ground


@contextlib.contextmanager
def house(servers: Servers, template: str, provider: Rehearsal, home: Path) -> Generator[Ground]:
    """One worker's parts for a whole module."""
    provider.reset()
    with fresh_database(servers, template) as url, ground(url, servers.valkey.url, provider.url, home) as made:
        yield made


def somebody(house: Ground, role: Role = Role.MEMBER, kind: PrincipalKind = PrincipalKind.PERSON) -> Ground:
    """The same house, somebody new at its door."""
    with house.database.connection() as connection:
        id_ = principals.ensure_principal(connection, f"somebody {uuid4()}", kind, role)
    return replace(house, person=id_)


def mine(person: Ground, kind: Kind = Kind.PERSON) -> Scope:
    return TEAM if kind is Kind.TEAM else Scope(kind, person.person)


def head(house: Ground, scope: Scope = TEAM) -> memory.Head:
    return house.database.read(lambda c: memories.read(c, scope)).head


def keep(person: Ground, text: str, kind: Kind = Kind.PERSON) -> None:
    """As that person does it by request."""
    change = Change(Action.ADD, text)
    person.database.read(lambda c: memories.change(c, mine(person, kind), change, person.person, 4_000))


def told(
    person: Ground, provider: Rehearsal, session: UUID, *calls: dict[str, Any], at_once: bool = False
) -> list[str]:
    """What the model is told of these calls, one a step or all in one, in a turn of that person."""
    steps = [list(calls)] if at_once else [[call] for call in calls]
    provider.script([*({"tools": step} for step in steps), {"text": "done"}], session=str(session))
    turn = person.turn(session, "go on")
    person.look()
    row = person.view(turn)
    assert row["status"] == "done", row
    rows = person.rows("select result from tool_runs where turn = %s order by step, ordinal", turn)
    return [row["result"] for row in rows]


def system(house: Ground, session: UUID) -> str:
    row = house.one(
        "select p.system_text from sessions s join prefixes p on p.digest = s.prefix where s.id = %s", session
    )
    return row["system_text"]

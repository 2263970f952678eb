"""What the gate would decide of a command, what was granted, and its end."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from api import answers, commands, pages, problems
from api.auth import allow
from api.commands import Answer
from api.injected import Reading, Serving, Writing, identifier
from api.openapi import accepts, gives
from api.reads import grants as reads
from api.visible import only
from api.wire.gate import BypassAsked, GateAsked, GateHit, GateSaid, Grant, GrantPage
from shared.gate import decide, modes
from shared.gate.bypass import LAUNCHED_WITH_BYPASS
from shared.gate.policy import Identity
from shared.ids import uuid7
from shared.store.intake import fetch
from shared.store.pool import Connection
from shared.store.statements import every, one
from shared.store.statements import grants as statements
from shared.values import Role

router = APIRouter(tags=["gate"])
_SEEN = only("select s.id from sessions s where s.id = %(session)s")


@router.post("/v1/gate", openapi_extra=accepts(GateAsked), responses=gives(GateSaid))
def judge(serving: Serving, written: Writing) -> Response:
    """What would be decided of a command where the host's files are in reach; it is not run. Where a worker isolates
    what it runs from them, that stands in for the patterns."""
    asked, who = written.body(GateAsked), written.caller.principal
    policy = modes.policy(serving.settings, asked.profile, is_job=asked.job)
    policy = replace(policy, patterns_off=LAUNCHED_WITH_BYPASS)
    session = "none"
    if asked.session is not None:
        session = str(asked.session)
        granted = serving.database.read(lambda c: _granted(c, who.id, asked.session))
        bypass = any(scope == "bypass" for scope, _ in granted)
        patterns = frozenset(pattern for _, patterns in granted for pattern in patterns)
        policy = replace(policy, granted=patterns, patterns_off=policy.patterns_off or bypass)
    said = decide.command(asked.command, Identity(str(who.id), session), policy)
    hits = [GateHit(rule=h.rule, decision=h.decision, why=h.why, what=h.what) for h in said.hits]
    return answers.ok(
        GateSaid(
            decision=said.decision, rule=said.rule, why=said.why, understood=list(said.understood),
            patterns=list(said.patterns), hits=hits,
        )
    )  # fmt: skip


@router.get("/v1/grants", responses=gives(GrantPage))
def list_grants(
    serving: Serving,
    caller: Reading,
    ended: bool = False,
    limit: pages.Limit = pages.DEFAULT,
    cursor: pages.Cursor = None,
) -> Response:
    """What was allowed beyond one call, newest first: one's own, to an approver everybody's."""
    skip = pages.decode(cursor, 0)
    rows = serving.database.read(lambda c: reads.page(c, caller.principal, skip, limit + 1, ended=ended))
    following = pages.encode(skip + limit) if len(rows) > limit else None
    return answers.ok(GrantPage(items=rows[:limit], next=following))


@router.get("/v1/grants/{grant}", responses=gives(Grant))
def get_grant(serving: Serving, caller: Reading, grant: str) -> Response:
    """One grant."""
    id_ = identifier(grant)
    return answers.ok(serving.database.read(lambda c: reads.find(c, id_, caller.principal)))


@router.delete("/v1/grants/{grant}", responses=gives(Grant))
def revoke(serving: Serving, written: Writing, grant: str) -> Response:
    """End a grant: one's own, or as an approver any. The next call that it would have covered is asked about. Ending
    one twice changes nothing."""
    id_, who = identifier(grant), written.caller.principal

    def work(connection: Connection, _again: bool) -> Grant:
        with connection.transaction():
            reads.find(connection, id_, who)
            one(connection, statements.REVOKE_GRANT, {"grant": id_, "principal": who.id})
            return reads.find(connection, id_, who)

    return answers.ok(serving.database.run(work))


@router.post(
    "/v1/sessions/{session}/bypass", status_code=201, openapi_extra=accepts(BypassAsked), responses=gives(Grant, 201)
)
def bypass(serving: Serving, written: Writing, session: str) -> Response:
    """For a time, nothing in this session is asked about for a pattern's sake. What cannot be undone, the deny list,
    files that steer, and what is not understood stay as they are. An approver's to open; it stands in the audit."""
    id_, who = identifier(session), written.caller.principal
    asked = written.body(BypassAsked)

    def effect(connection: Connection) -> Answer:
        _must_see(connection, id_, who.id)
        allow(written.caller, Role.APPROVER)
        grant = uuid7()
        values = {
            "grant": grant, "session": id_, "principal": who.id, "minutes": asked.minutes, "note": asked.note or None,
        }  # fmt: skip
        one(connection, statements.OPEN_BYPASS, values)
        return Answer(201, answers.text(reads.find(connection, grant, who)))

    return commands.perform(serving, written, effect).response()


def _must_see(connection: Connection, session: UUID | None, who: UUID) -> None:
    if fetch(connection, _SEEN, {"session": session, "who": who}) is None:
        raise problems.not_found()


def _granted(connection: Connection, who: UUID, session: UUID | None) -> list[tuple[str, list[str]]]:
    _must_see(connection, session, who)
    rows = every(connection, statements.GRANTS_STANDING, {"principal": who, "session": session})
    return [(row["scope"], row["patterns"]) for row in rows]

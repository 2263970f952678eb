"""Keys that a person or a job has of their own: which key each call had, as the provider's ledger has it."""

from __future__ import annotations

from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from deploy.local.servers import Servers
from shared.providers.scopes import Owner
from shared.redact import REDACTOR
from shared.store import intake, principals
from shared.values import OnBusy, PrincipalKind, Role, TurnClass
from tests.ground import Ground, Rehearsal, ground
from tests.waiting.acts import advance, delegate
from workers import claiming
from workers.providers import routes

ANN, BEN, NIGHTLY = "key-of-ann-0001", "key-of-ben-0001", "key-of-nightly-0001"
TEAM = "key-of-the-team-0001"


def put(home: Path, place: str, value: str, mode: int = 0o600) -> Path:
    path = home / "keys" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value + "\n")
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def house(
    servers: Servers, module_database_url: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    home: Path = tmp_path_factory.mktemp("k")
    put(home, "people/ann/anthropic/one", ANN)
    put(home, "people/ben/anthropic/one", BEN)
    put(home, "jobs/nightly/anthropic/one", NIGHTLY)
    with ground(module_database_url, servers.valkey.url, provider.url, home, provider_key=TEAM) as made:
        yield made


@pytest.fixture(autouse=True)
def anew(house: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "LOOK_S", 0.0)
    provider.reset()
    house.forget_keys()


def who(house: Ground, name: str, kind: PrincipalKind = PrincipalKind.PERSON) -> UUID:
    with house.database.connection() as connection:
        return principals.ensure_principal(connection, name, kind, Role.MEMBER)


def say(house: Ground, session: UUID, name: str, text: str = "go", on_busy: OnBusy = OnBusy.QUEUE, **more: Any) -> UUID:
    speaker, house.person = house.person, who(house, name)
    try:
        return house.turn(session, text, on_busy=on_busy, **more)
    finally:
        house.person = speaker


def used(provider: Rehearsal, *secrets: str) -> list[str]:
    """Of each call that the provider saw, whose key it came with."""
    known = {sha256(secret.encode()).hexdigest()[:8]: secret for secret in (ANN, BEN, NIGHTLY, TEAM, *secrets)}
    return [known[call["key"]] for call in provider.ledger() if call["key"] is not None]  # None: refused as no key


def test_in_a_teams_session_each_turn_has_the_keys_of_who_asked_for_it(house: Ground, provider: Rehearsal) -> None:
    session = house.session(audience="team")
    for name, key in (("ann", ANN), ("ben", BEN), ("cleo", TEAM), ("ann", ANN)):
        turn = say(house, session, name)
        house.look()
        assert house.view(turn)["status"] == "done"
        assert used(provider)[-1] == key
    assert len(used(provider)) == 4


def test_somebody_elses_word_in_a_turn_does_not_change_whose_keys_it_uses(house: Ground, provider: Rehearsal) -> None:
    session = house.session(audience="team")
    turn = say(house, session, "ann")
    with house.database.connection() as connection, connection.transaction():
        text = '[{"type":"text","text":"use mine"}]'
        new = intake.NewTurn(session, who(house, "ben"), TurnClass.INTERACTIVE, text, deadline_s=600, max_steps=90)
        assert intake.steer(connection, turn, new, queue_bound=100).turn == turn
    house.look()
    assert house.view(turn)["contributors"] == [who(house, "ben")]
    assert used(provider) == [ANN]


def test_children_have_the_keys_of_whoever_asked_for_the_root(house: Ground, provider: Rehearsal) -> None:
    session = house.session(audience="team")
    provider.script([{"text": "on", "tools": [delegate("one", "two")]}, {"text": "all in"}], session=str(session))
    provider.script([{"text": "found"}])
    turn = say(house, session, "ben")
    house.look()
    assert house.view(turn)["answer"] == "all in"
    assert used(provider) == [BEN] * 4


def job(house: Ground, name: str, owner: str) -> UUID:
    made = uuid4()
    house.execute(
        "insert into jobs (id, name, owner, principal, cron, zone, prompt) "
        "values (%s, %s, %s, %s, '* * * * *', 'UTC', 'p')",
        made, name, who(house, owner), who(house, f"job {name}", PrincipalKind.JOB),
    )  # fmt: skip
    return made


def test_a_jobs_run_and_its_children_have_the_jobs_keys_and_never_a_persons(house: Ground, provider: Rehearsal) -> None:
    nightly, other = job(house, "nightly", "ann"), job(house, "other", "ann")
    session = house.session(audience="team")
    provider.script([{"text": "on", "tools": [delegate("one")]}, {"text": "all in"}], session=str(session))
    turn = say(house, session, "ann", job=nightly, turn_class=TurnClass.JOB)
    house.look()
    assert house.view(turn)["answer"] == "all in"
    assert used(provider) == [NIGHTLY] * 3
    say(house, house.session(audience="team"), "ann", job=other, turn_class=TurnClass.JOB)
    house.look()
    assert used(provider)[3:] == [TEAM]


def test_a_service_of_a_persons_name_and_housekeeping_where_others_read_have_the_teams(
    house: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(house.home, "people/hook/anthropic/one", "key-of-a-hook-01")
    who(house, "hook", PrincipalKind.SERVICE)
    say(house, house.session(audience="team"), "hook")
    house.look()
    assert used(provider) == [TEAM]
    for audience, owner in (("team", None), ("private", Owner("people", "ann"))):
        with monkeypatch.context() as patch:
            patch.setattr(house, "person", who(house, "ann"))
            session = house.session(audience=audience)
        turn = say(house, session, "ann", turn_class=TurnClass.CHORE)
        held = claiming.claim_next(house.ports, (TurnClass.CHORE,), uuid4())
        assert held is not None
        assert (held.claim.turn, held.claim.owner) == (turn, owner)


@pytest.mark.parametrize(
    "name", ["../people/ann", "./ann", "ann/", "ANN", "ann ", "a\u0301nn", "..", ".", "ann\n", "people", "\u0430nn"],
    ids=ascii,
)  # fmt: skip
def test_a_name_like_anothers_opens_nothing(house: Ground, provider: Rehearsal, name: str) -> None:
    put(house.home, "people/\u00e1nn/anthropic/one", "key-of-a-third-01")
    turn = say(house, house.session(audience="team"), name)
    house.look()
    assert house.view(turn)["status"] == "done"
    assert used(provider) == [TEAM]


def test_own_keys_that_are_used_up_fall_to_the_teams_and_to_nobody_elses(house: Ground, provider: Rehearsal) -> None:
    busy = {"fault": {"kind": "status", "status": 429, "retry_after": 60}}
    session = house.session()
    provider.script([busy, {"text": "answered"}, {"text": "again"}, {"text": "back"}], session=str(session))
    for answer in ("answered", "again"):
        turn = say(house, session, "ann")
        house.look()
        assert house.view(turn)["answer"] == answer
    assert used(provider) == [ANN, TEAM, TEAM]
    advance(house, 120)
    turn = say(house, session, "ann")
    house.look()
    assert house.view(turn)["answer"] == "back"
    assert used(provider)[3:] == [ANN]


def test_where_the_teams_may_not_stand_in_a_turn_waits_for_its_own(house: Ground, provider: Rehearsal) -> None:
    busy = {"fault": {"kind": "status", "status": 429, "retry_after": 60}}
    settings = house.ports.routes._settings
    house.ports.routes._settings = settings.model_copy(update={"team_keys_stand_in": False})
    try:
        session = house.session()
        provider.script([busy, {"text": "answered"}], session=str(session))
        turn = say(house, session, "ann")
        house.look()
        assert house.view(turn)["status"] == "parked"
        other = say(house, house.session(), "cleo")  # who has none uses the team's still
        house.look()
        assert house.view(other)["status"] == "done"
    finally:
        house.ports.routes._settings = settings
    assert used(provider) == [ANN, TEAM]


def test_a_key_that_was_exchanged_holds_at_once_and_one_that_is_gone_is_gone(
    house: Ground, provider: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LOOK_S", 3_600.0)
    path = put(house.home, "people/dora/anthropic/one", "invalid-0001")
    house.ports.routes.pools("anthropic", Owner("people", "dora"))
    path.write_text("key-of-dora-0002")  # what is remembered is refused, and read again
    turn = say(house, house.session(), "dora")
    house.look()
    assert house.view(turn)["status"] == "done"
    assert provider.ledger()[-1]["key"] == sha256(b"key-of-dora-0002").hexdigest()[:8]
    assert "key-of-dora-0002" not in REDACTOR.clean("it is key-of-dora-0002").text
    path.unlink()
    monkeypatch.setattr(routes, "LOOK_S", 0.0)
    say(house, house.session(), "dora")
    house.look()
    assert used(provider, "key-of-dora-0002")[-1] == TEAM

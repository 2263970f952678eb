"""Whose key a turn gets, and which files are no keys."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from shared import secrets, settings
from shared.secrets import TEAM, Authority, Secret, SecretMissing, Secrets, SecretUnusable
from shared.settings import Settings
from shared.store import authority
from shared.values import TurnClass
from tests.ground import Ground

PERSON, OTHER, JOB = UUID(int=1), UUID(int=2), UUID(int=3)


def put(folder: Path, name: str, value: str, mode: int = 0o600) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value)
    path.chmod(mode)


@pytest.fixture
def house(tmp_path: Path) -> Secrets:
    put(tmp_path, "team/KEY", "of the team\n")
    put(tmp_path, f"person/{PERSON}/KEY", "of a person")
    put(tmp_path, f"job/{JOB}/KEY", "of a job")
    put(tmp_path, f"person/{PERSON}/OWN", "only a person's")
    return Secrets(
        tmp_path, {"NIGHTSHIFT_SECRET_SPARE": "of the environment", "NIGHTSHIFT_SECRET_KEY": "the file is nearer"}
    )


@pytest.mark.parametrize(
    ("authority", "value"),
    [
        (TEAM, "of the team"),
        (Authority(person=PERSON), "of a person"),
        (Authority(person=OTHER), "of the team"),
        (Authority(job=JOB), "of a job"),
        (Authority(job=OTHER), "of the team"),
    ],
    ids=["team", "person", "another person", "job", "another job"],
)
def test_the_nearest_key_of_the_authority_is_the_one(house: Secrets, authority: Authority, value: str) -> None:
    assert house.find("KEY", authority).value == value


def test_nobody_gets_a_persons_own_key_but_that_person(house: Secrets) -> None:
    assert house.find("OWN", Authority(person=PERSON)) == Secret("OWN", f"person/{PERSON}", "only a person's")
    for other in (TEAM, Authority(person=OTHER), Authority(job=JOB)):
        with pytest.raises(SecretMissing, match="there is no secret OWN"):
            house.find("OWN", other)


def test_the_environment_holds_keys_of_the_team(house: Secrets) -> None:
    assert house.find("SPARE", Authority(person=PERSON)).value == "of the environment"


@pytest.mark.parametrize("name", ["", "key", "../team/KEY", "KEY/..", "A" * 65, "KEY\n", "Ä"])
def test_what_is_no_name_of_a_secret_finds_none(house: Secrets, name: str) -> None:
    with pytest.raises(SecretMissing):
        house.find(name, TEAM)


def test_a_file_that_others_can_read_is_no_secret_and_is_named(tmp_path: Path) -> None:
    put(tmp_path, "team/OPEN", "value-of-it", 0o640)
    (tmp_path / "team/LINK").symlink_to(tmp_path / "team/OPEN")
    (tmp_path / "team/BYTES").write_bytes(b"\xff\xfe")
    (tmp_path / "team/BYTES").chmod(0o600)
    house = Secrets(tmp_path, {})
    for name in ("OPEN", "BYTES"):
        with pytest.raises(SecretUnusable) as refused:
            house.find(name, TEAM)
        assert "value-of-it" not in refused.value.message
    with pytest.raises(SecretMissing):
        house.find("LINK", TEAM)
    assert house.unusable() == (
        "the secret BYTES is no text",
        f"the secret {tmp_path.name}/team/OPEN can be read by others: chmod 600 it",
    )


def test_a_secret_shows_in_no_representation(house: Secrets) -> None:
    assert "of the team" not in repr(house.find("KEY", TEAM))


def test_all_that_a_process_could_come_by_is_known_to_the_redactor(tmp_path: Path) -> None:
    put(tmp_path, "secrets/team/A", "file-value")
    made = Settings(
        home=tmp_path, provider_key="provider-value", token="token-value", redis_url="redis://:redis-value@h:1/0",
        database_url="postgresql://u:base-value@h/d",
    )  # fmt: skip
    found = secrets.known(made, {"NIGHTSHIFT_SECRET_B": "environment-value"})
    assert set(found) == {
        "provider-value", "token-value", "redis-value", "base-value", "environment-value", "file-value",
    }  # fmt: skip


def test_a_variable_of_a_secret_is_no_unknown_setting() -> None:
    assert settings.load({"NIGHTSHIFT_SECRET_ANY": "x"}).secrets is None


def test_a_turn_has_its_persons_keys_only_while_nobody_else_spoke_in_it(worker: Ground) -> None:
    def of(turn: UUID) -> Authority:
        return worker.database.read(lambda c: authority.of_turn(c, turn))

    turn = worker.turn(worker.session(), "x")
    assert of(turn) == Authority(person=worker.person)
    worker.execute("update turns set contributors = array[%s] where id = %s", uuid4(), turn)
    assert of(turn) == TEAM
    assert of(uuid4()) == TEAM
    worker.execute("update principals set kind = 'job' where id = %s", worker.person)
    by_a_job = worker.turn(worker.session(), "x", turn_class=TurnClass.JOB)
    assert of(by_a_job) == TEAM

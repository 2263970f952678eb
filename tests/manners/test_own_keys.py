"""Whose a key file is, by where it lies; and that no two scopes share a name for a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared import secrets
from shared.providers import scopes
from shared.providers.configured import ProviderSettings
from shared.providers.credentials import credentials, known_keys, own, owned
from shared.providers.scopes import Owner
from shared.redact import REDACTOR
from shared.settings import Settings
from shared.store.statements import admission
from workers.manners.fleet import Fleet
from workers.providers import routes as routes_module
from workers.providers.routes import Routes

SECRET, TOKEN = "the/secret/part/of/it", "the-token-part-of-it"
ANN, JOB = Owner("people", "ann"), Owner("jobs", "ann")


def put(home: Path, place: str, value: str, mode: int = 0o600) -> None:
    path = home / "keys" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value)
    path.chmod(mode)


def test_one_text_in_three_scopes_is_three_keys(tmp_path: Path) -> None:
    for place in ("anthropic/k", "people/ann/anthropic/k", "jobs/ann/anthropic/k"):
        put(tmp_path, place, "the same")
    settings = Settings(home=tmp_path)
    found = (
        *credentials(settings, "anthropic", {}), *own(settings, "anthropic", ANN), *own(settings, "anthropic", JOB),
    )  # fmt: skip
    assert len({one.id for one in found}) == len(found) == 3
    assert found[0].id.startswith("anthropic:k:")  # what is known of the team's keys stays theirs
    assert not any("the same" in f"{one!r} {one.id}" for one in found)


def test_own_keys_go_first_and_the_teams_stand_in_unless_they_may_not(tmp_path: Path) -> None:
    put(tmp_path, "people/ann/ollama/k", "own")
    put(tmp_path, "people/ann/mistral/k", "own")
    put(tmp_path, "people/ann/mistral/open", "seen by all", 0o644)
    put(tmp_path, "mistral/k", "team")

    def of(provider: str, owner: Owner | None, *, team_keys_stand_in: bool = True) -> list[list[str]]:
        routes = Routes(Settings(home=tmp_path, team_keys_stand_in=team_keys_stand_in), Fleet(None, lambda: 1), {})
        return [[one.key for one in pool] for pool in routes.pools(provider, owner)]

    assert of("mistral", ANN) == [["own"], ["team"]]
    assert of("mistral", ANN, team_keys_stand_in=False) == [["own"]]
    assert of("mistral", Owner("people", "ben"), team_keys_stand_in=False) == [["team"]]
    assert of("mistral", JOB) == of("mistral", None) == [["team"]]
    assert of("ollama", ANN) == [["own"]]  # no key at all stands in for none
    assert of("openai", ANN) == []


def test_a_turn_without_identity_has_the_teams_keys() -> None:
    assert scopes.owner(None, None, None) is None
    assert scopes.owner("a job", None, "ann") is None  # its job is gone: not therefore a person's
    assert scopes.owner("a job", "ann", "ben") == JOB
    assert scopes.owner(None, "ann", "ann") == ANN


@pytest.mark.parametrize("name", ["", ".", "..", "../ann", "ann/", "ANN", "\u0430nn", "ann\0", "ben", "ben/../ann"])
def test_a_folder_is_found_by_its_whole_name_alone(tmp_path: Path, name: str) -> None:
    put(tmp_path, "people/ann/anthropic/k", "own")
    (tmp_path / "keys/people/ben").symlink_to(tmp_path / "keys/people/ann")
    assert own(Settings(home=tmp_path), "anthropic", Owner("people", name)) == ()


def test_every_key_of_every_scope_is_known_to_the_redactor(tmp_path: Path) -> None:
    places = ("mistral/k", "people/ann/openai/k", "people/nobody/x-y/k", "jobs/j/anthropic/k")
    for number, place in enumerate(places):
        put(tmp_path, place, f"key-number-{number}")
    put(tmp_path, "people/ann/bedrock/k", f"AKIAEXAMPLE00001:{SECRET}:{TOKEN}")
    found = secrets.known(Settings(home=tmp_path), {})
    assert {f"key-number-{number}" for number in range(4)} | {SECRET, TOKEN} <= set(found)


def test_a_rehearsals_own_key_is_a_word_and_no_secret(tmp_path: Path) -> None:
    put(tmp_path, "people/ann/anthropic/k", "key-number-1")
    settings = Settings(home=tmp_path, rehearsal=True, provider_key="rehearsal-word")
    assert set(secrets.known(settings, {})) == set(known_keys(settings, {})) == {"key-number-1"}


def test_another_persons_key_that_comes_later_is_known_with_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_module, "LOOK_S", 0.0)
    routes = Routes(Settings(home=tmp_path), Fleet(None, lambda: 1), {})
    routes.pool("mistral")
    put(tmp_path, "people/ben/openai/k", "a-key-that-came-later")
    routes.pool("mistral")
    assert "a-key-that-came-later" not in REDACTOR.clean("it is a-key-that-came-later").text


def test_of_a_provider_each_pool_of_keys_has_a_bound_of_its_own_at_the_claim(tmp_path: Path) -> None:
    for place, value in (("people/ann/openai/a", "1"), ("people/ann/openai/b", "2"), ("jobs/j/mistral/k", "3")):
        put(tmp_path, place, value)
    settings = Settings(home=tmp_path, providers={"openai": ProviderSettings(concurrency=4)})
    assert owned(settings) == {("openai", ANN): 2, ("mistral", Owner("jobs", "j")): 1}
    found = admission.limits(settings, None, {"OPENAI_API_KEY": "team"})
    assert (found["provider_names"], found["provider_mosts"]) == (["openai"], [4])
    assert (found["own_names"], found["own_mosts"]) == (["ann"], [8])
    both = admission.limits(settings.model_copy(update={"provider_limit": 3}), None, {})
    assert dict(zip(both["own_names"], both["own_mosts"], strict=True)) == {"ann": 3, "j": 3}
    assert admission.limits(Settings(home=tmp_path), None, {})["own_names"] == []

"""The model of a session, changed over HTTP: from its next turn on, as an epoch that tells what it costs."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from api.reads import switch
from shared import rates
from shared.providers.chains import Link
from shared.providers.configured import ProviderSettings
from shared.values import EventKind
from tests.api.serving import Api, Person
from tests.ground import Ground, Rehearsal, ground

NEW = "claude-haiku-5-5"


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path) as made:
        yield made


def test_the_next_turn_is_answered_by_the_new_model_and_tells_first_what_that_costs(
    worker: Ground, api: Api, anna: Person
) -> None:
    session = anna.session(audience="private")
    anna.turn(session)
    worker.look()
    old = anna.get(f"/v1/sessions/{session}").json()["model"]
    price = anna.get(f"/v1/sessions/{session}/switch", model=NEW).json()
    assert (price["changes"], price["stays"]["model"], price["to"]["model"]) == (True, old, NEW)
    assert (price["stays"]["anew"], price["to"]["anew"]) == (False, True)
    assert price["to"]["cost_usd"] > price["stays"]["cost_usd"] > 0
    assert anna.get(f"/v1/sessions/{session}").json()["model"] == old, "to ask for the price is not to switch"
    changed = anna.http.patch(f"/v1/sessions/{session}", json={"model": NEW})
    assert (changed.status_code, changed.json()["model"]) == (200, NEW)
    turn = anna.turn(session)
    worker.look()
    (call,) = worker.rows("select model, status from calls where turn = %s", turn)
    assert (call["model"], call["status"]) == (NEW, "settled")
    events = worker.events(UUID(turn))
    kinds = [event.kind for event in events]
    assert kinds.index(EventKind.MODEL_SWITCHED) < kinds.index(EventKind.STEP_STARTED)
    (told,) = [event.data for event in events if event.kind is EventKind.MODEL_SWITCHED]
    assert (told["left"], told["to"]) == (f"anthropic:{old}", f"anthropic:{NEW}")
    assert told["tokens"] > 0
    assert told["cost_usd"] == pytest.approx(price["to"]["cost_usd"], rel=0.1), "it was told another price before"
    epochs = worker.rows("select cause from edits where session = %s and kind = 'prefix' order by id", session)
    assert len(epochs) == 2


def test_what_cannot_be_is_refused_with_what_to_do(api: Api, anna: Person, ben: Person) -> None:
    session = anna.session(audience="team")
    path = f"/v1/sessions/{session}"
    assert ben.http.patch(path, json={"model": NEW}).status_code == 403
    assert ben.get(f"{path}/switch", model=NEW).status_code == 200, "what is said of it is for all who may see it"
    unknown = anna.http.patch(path, json={"model": NEW, "provider": "nobody"})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "provider_unknown")
    assert anna.http.patch(path, json={"provider": "openai"}).status_code == 422
    assert anna.http.patch(path, json={"model": None}).status_code == 422


def test_a_model_that_the_provider_does_not_have_is_refused_at_once_with_the_nearest_names(
    api: Api, anna: Person, ben: Person
) -> None:
    session = anna.session(audience="private")
    path = f"/v1/sessions/{session}"
    job = {"name": "a job", "cron": "0 6 * * *", "prompt": "x"}
    refused = [
        anna.post("/v1/sessions", {"model": "claude-hiaku-5-5"}),
        anna.post("/v1/jobs", {**job, "model": "claude-hiaku-5-5"}),
        anna.http.patch(path, json={"model": "claude-hiaku-5-5"}),
        anna.get(f"{path}/switch", model="claude-hiaku-5-5"),
    ]
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (422, "model_unknown")
        assert NEW in answer.json()["detail"]
    assert anna.post("/v1/sessions", {"model": "nonsense"}).json()["code"] == "model_unknown"
    assert anna.get(path).json()["model"] == api.settings.model
    assert ben.get(f"{path}/switch", model=NEW).status_code == 404


def test_a_conversation_that_has_not_begun_costs_nothing_to_switch(anna: Person) -> None:
    price = anna.get(f"/v1/sessions/{anna.session(audience='private')}/switch", model=NEW).json()
    assert (price["tokens"], price["to"]["cost_usd"], price["stays"]["cost_usd"]) == (0, 0, 0)


def test_a_price_of_a_switch_knows_what_marks_do_for_the_model_as_the_turn_will(api: Api) -> None:
    """On Bedrock they are Claude's alone: what is marked is paid as a write."""
    model, at = "anthropic.claude-sonnet-4-5-20250929-v1:0", datetime(2026, 11, 1, tzinfo=UTC)
    url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
    settings = api.settings.model_copy(update={"providers": {"bedrock": ProviderSettings(base_url=url)}})
    told = switch._price(settings, Link("bedrock", model), 1_000_000, at, cached=False)
    assert told is not None
    assert told == rates.anew(model, 1_000_000, at, provider="bedrock", marks=True)

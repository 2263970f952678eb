"""Children over HTTP: listed under the session that made them, to whom may see it, their bill beside the turn's."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import Api, Person
from tests.ground import Ground, Rehearsal, ground


@pytest.fixture
def worker(api: Api, provider: Rehearsal, tmp_path: Path) -> Generator[Ground]:
    provider.reset()
    settings = api.settings
    with ground(settings.database_url, settings.redis_url, provider.url, tmp_path, spawn_depth=2) as made:
        yield made


def _grown(worker: Ground, provider: Rehearsal, person: Person) -> tuple[str, str]:
    """A turn with two children, each with two of its own. Session and turn."""
    provider.post("script", {"policy": "tree", "width": 2, "goal": "look at part", "text": "found"})
    session = person.session()
    turn = person.turn(session, "grow")
    worker.look(2)
    return session, turn


def test_children_are_listed_with_what_they_did_and_cost(worker: Ground, provider: Rehearsal, anna: Person) -> None:
    session, turn = _grown(worker, provider, anna)
    page = anna.get(f"/v1/sessions/{session}/children", limit=1).raise_for_status().json()
    more = anna.get(f"/v1/sessions/{session}/children", cursor=page["next"]).raise_for_status().json()
    assert more["next"] is None
    children: list[dict[str, Any]] = [*page["items"], *more["items"]]
    assert [(c["number"], c["title"], c["status"], c["parent_id"], c["step"], c["ordinal"]) for c in children] == [
        (1, "look at part 1", "done", turn, 1, 1),
        (2, "look at part 2", "done", turn, 1, 1),
    ]
    shown = anna.get(f"/v1/turns/{turn}").raise_for_status().json()
    assert shown["parent_id"] is None
    assert shown["children_cost_usd"] == pytest.approx(sum(child["cost_usd"] for child in children))
    first = anna.get(f"/v1/turns/{children[0]['turn_id']}").raise_for_status().json()
    assert first["parent_id"] == turn
    assert children[0]["cost_usd"] == pytest.approx(first["cost_usd"] + first["children_cost_usd"])
    below = anna.get(f"/v1/sessions/{children[0]['session_id']}/children").raise_for_status().json()["items"]
    assert [child["parent_id"] for child in below] == [first["id"]] * 2
    ledger = anna.get("/v1/ledger", by="purpose").raise_for_status().json()
    assert ledger["total"]["cost_usd"] == pytest.approx(shown["cost_usd"] + shown["children_cost_usd"])


def test_who_may_not_see_the_session_sees_none_of_its_children(
    worker: Ground, provider: Rehearsal, anna: Person, ben: Person
) -> None:
    session, _ = _grown(worker, provider, anna)
    children = anna.get(f"/v1/sessions/{session}/children").raise_for_status().json()["items"]
    assert ben.get(f"/v1/sessions/{session}/children").status_code == 404
    for child in children:
        assert ben.get(f"/v1/turns/{child['turn_id']}").status_code == 404
        assert ben.get(f"/v1/sessions/{child['session_id']}/messages").status_code == 404
    assert anna.get("/v1/sessions/none/children").status_code == 404

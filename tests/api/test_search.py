"""`GET /v1/search`: hits as the contract says, pages, and what is wrong with a question by its code."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from api.cli.main import main
from tests.api.hand import Hand
from tests.api.serving import Api, Person
from tests.scheduler.world import World
from tests.shrink.recalled import saying


def indexed(api: Api) -> None:
    with saying(World(api.settings.database_url, api.settings.redis_url, Path("/none"))) as said:
        said.index()


def spoken(person: Person, hand: Hand, session: str, text: str, *, said: str = "a question") -> str:
    """A turn of that session in which the model has said so."""
    turn = person.turn(session, said)
    hand.claim(turn)
    hand.commit(turn, "before it")
    hand.commit(turn, text)
    hand.commit(turn, "after it")
    hand.end(turn, answer=text)
    return turn


def test_a_hit_is_shown_in_its_surroundings(api: Api, anna: Person, hand: Hand) -> None:
    session = anna.session(title="birds")
    turn = spoken(anna, hand, session, "the kingfisher is 数据库 blue")
    indexed(api)
    answer = anna.get("/v1/search", q="kingfisher")
    assert answer.status_code == 200
    page = answer.json()
    (hit,) = page["items"]
    ids = [row["id"] for row in anna.get(f"/v1/sessions/{session}/messages").json()["items"]]
    created_at = hit.pop("created_at")
    assert created_at.startswith("20")
    assert hit == {
        "session_id": session, "title": "birds", "kind": "chat", "message_id": ids[1], "turn_id": turn,
        "author": "model", "role": "assistant", "state": "live", "snippet": "the kingfisher is 数据库 blue",
        "handle": f"result:{ids[1]}.0", "more": 0,
        "before": {"message_id": ids[0], "author": "model", "role": "assistant", "text": "before it"},
        "after": {"message_id": ids[2], "author": "model", "role": "assistant", "text": "after it"},
    }  # fmt: skip
    assert (page["next"], page["complete"]) == (None, True)
    for q in ("数据库", "ingfish", '"is 数据库 blue"', "KINGFISHER"):
        assert [one["message_id"] for one in anna.get("/v1/search", q=q).json()["items"]] == [ids[1]], q


def test_pages_hold_each_session_once(api: Api, anna: Person, ben: Person, hand: Hand) -> None:
    made = {anna.session() for _ in range(5)}
    for session in made:
        spoken(anna, hand, session, "a nuthatch")
    indexed(api)
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        more = {} if cursor is None else {"cursor": cursor}
        page = anna.get("/v1/search", q="nuthatch", limit=2, **more).json()
        seen += [hit["session_id"] for hit in page["items"]]
        cursor = page["next"]
    assert cursor is None
    assert sorted(seen) == sorted(made)
    assert ben.get("/v1/search", q="nuthatch").json() == {"items": [], "next": None, "complete": True}
    session = seen[0]
    assert [hit["session_id"] for hit in anna.get("/v1/search", q="nuthatch", session=session).json()["items"]] == [
        session
    ]
    hidden = ben.get("/v1/search", q="nuthatch", session=session)
    unknown = ben.get("/v1/search", q="nuthatch", session=str(uuid4()))
    assert (hidden.status_code, hidden.content) == (404, unknown.content)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({}, "input_invalid"), ({"q": ""}, "query_empty"), ({"q": "&|!()"}, "query_empty"),
        ({"q": "\x00"}, "query_empty"),
        ({"q": "w " * 10_000}, "query_too_long"), ({"q": "w", "limit": 0}, "input_invalid"),
        ({"q": "w", "limit": 51}, "input_invalid"), ({"q": "w", "cursor": "?"}, "cursor_invalid"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_question_that_is_none_has_a_code(anna: Person, params: dict[str, object], code: str) -> None:
    answer = anna.get("/v1/search", **params)
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def test_one_who_does_not_sign_in_finds_nothing(api: Api) -> None:
    answer = api.client("nobody").get("/v1/search", params={"q": "word"})
    assert (answer.status_code, answer.json()["code"]) == (401, "token_invalid")


def test_the_command_line_prints_hits_and_gives_json(
    api: Api, anna: Person, hand: Hand, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = anna.session(title="marsh")
    spoken(anna, hand, session, "a \x1b[31m garganey\nhere")
    for _ in range(2):
        spoken(anna, hand, anna.session(), "garganey")
    indexed(api)
    monkeypatch.setenv("NIGHTSHIFT_URL", api.url)
    monkeypatch.setenv("NIGHTSHIFT_TOKEN", anna.token)
    assert main(["search", "garganey", "here"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    lines = said.splitlines()
    assert lines[0].startswith(f"{session}  ")
    assert lines[0].endswith("  marsh")
    assert lines[1:4] == ["    model: before it", "  > model: a ␛[31m garganey here", "    model: after it"]
    assert main(["search", "garganey", "--limit", "2", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (len(page["items"]), page["complete"]) == (2, True)
    assert page["next"] is not None
    assert main(["search", "no such thing"]) == 0
    assert "nothing was found" in capsys.readouterr().err
    assert main(["search", "!!!"]) == 2
    assert "query_empty" in capsys.readouterr().err

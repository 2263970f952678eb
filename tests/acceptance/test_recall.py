"""Two people and their canaries: no search, no tool and no handle carries one to who may not see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.house import Rig, bodies
from tests.acceptance.people import Person, person
from tests.ground import until


def begin(who: Person, **more: Any) -> str:
    return who.http.post("/v1/sessions", json=more).raise_for_status().json()["id"]


def say(stack: Rig, who: Person, session: str, text: str, *replies: dict[str, Any]) -> str:
    """A turn to its end, in which the model does as scripted."""
    stack.script(session, [*replies, {"text": "so it is"}])
    turn = who.http.post(f"/v1/sessions/{session}/turns", json={"input": text}).raise_for_status().json()["turn"]["id"]
    (row,) = stack.all_ended([turn], 60)
    assert row["status"] == "done", row
    return turn


def found(who: Person, words: str) -> list[dict[str, Any]]:
    return who.http.get("/v1/search", params={"q": words}).raise_for_status().json()["items"]


def indexed(who: Person, words: str, count: int) -> list[dict[str, Any]]:
    return until(lambda: hits if len(hits := found(who, words)) == count else [], 60, f"{count} hits for {words}")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def test_no_canary_crosses_by_search_by_tools_or_by_handles(fleet: Rig, captured: Path) -> None:
    with person(fleet) as anna, person(fleet) as ben:
        annas, bens = begin(anna, title="diary kx11"), begin(ben)
        team, shared = begin(anna, audience="team"), begin(ben, audience="people", people=[str(anna.id)])
        say(fleet, anna, annas, "the wollemi code is kx11, 密码是 kx11")
        say(fleet, ben, bens, "the wollemi code is qz22")
        (annas_hit,), (bens_hit,) = indexed(anna, "wollemi", 1), indexed(ben, "wollemi", 1)
        assert ("kx11" in annas_hit["snippet"], "qz22" in bens_hit["snippet"]) == (True, True)
        for who, canary in ((anna, "qz22"), (ben, "kx11")):
            for words in (canary, canary[:3], "wollemi", "密码", "diary"):
                answer = who.http.get("/v1/search", params={"q": words})
                assert canary not in answer.text, words

        asks = [
            call("session_search", query="wollemi code"), call("session_search", query="密码"),
            call("read_artifact", handle=annas_hit["handle"]), call("read_artifact", handle=bens_hit["handle"]),
            call("session_search", query="wollemi", session=annas),
            call("session_search", query="wollemi", session=bens),
        ]  # fmt: skip
        for who, session, sees in ((anna, annas, "kx11"), (ben, bens, "qz22"), (anna, team, ""), (ben, shared, "")):
            before = len(bodies(captured, session))
            say(fleet, who, session, "look it up", *asks)
            sent = b"".join(bodies(captured, session)[before:]).decode()
            assert {canary for canary in ("kx11", "qz22") if canary in sent} == ({sees} if sees else set())
        assert found(anna, "kx11")[0]["session_id"] == annas


def test_what_was_taken_back_over_http_is_found_by_nobody_and_again_when_that_is_undone(fleet: Rig) -> None:
    with person(fleet) as anna:
        session = begin(anna)
        say(fleet, anna, session, "an araucaria grows here")
        turn = say(fleet, anna, session, "and a kauri there")
        (hit,) = indexed(anna, "kauri", 1)
        wait_for(fleet, anna.http.post(f"/v1/sessions/{session}/rewind", json={"to_turn": turn}))
        assert (found(anna, "kauri"), found(anna, "kaur")) == ([], [])
        (kept,) = found(anna, "araucaria")
        assert kept["after"] is None or "kauri" not in kept["after"]["text"]
        wait_for(fleet, anna.http.post(f"/v1/sessions/{session}/restore", json={}))
        assert [one["message_id"] for one in found(anna, "kauri")] == [hit["message_id"]]


def wait_for(stack: Rig, asked: httpx.Response) -> None:
    assert asked.status_code == 202, asked.text
    stack.all_ended([asked.json()["turn"]["id"]], 60)

"""Two people and a whole stack: what one keeps is in their next conversation, in no other, until they put it there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.acceptance.house import Rig, bodies, refused
from tests.acceptance.people import person
from tests.ground import until

OWN, TEAM, GIVEN = "anna drinks tea 8a1", "we release on tuesdays 8a2", "anna plays chess 8a3"


def test_what_a_person_keeps_goes_where_they_put_it_and_nowhere_else(fleet: Rig, captured: Path) -> None:
    def sent(session: str) -> str:
        return b"\n".join(bodies(captured, session)).decode()

    with person(fleet) as anna, person(fleet) as ben:
        hers, his = replace(fleet, http=anna.http), replace(fleet, http=ben.http)
        put = {"entries": [OWN, GIVEN], "revision": 0}
        kept = anna.http.put("/v1/memory/me", json=put)
        assert (kept.status_code, kept.headers["etag"]) == (200, '"1"')
        team = anna.http.get("/v1/memory/team").json()
        written = ben.http.put(
            "/v1/memory/team", json={"entries": [*team["entries"], TEAM]}, headers={"if-match": f'"{team["revision"]}"'}
        )
        assert written.status_code == 200, written.text
        refused(
            anna.http.put("/v1/memory/team", json={"entries": [], "revision": team["revision"]}), 409, "memory_changed"
        )
        refused(ben.http.get(f"/v1/memory/{anna.id}"), 404, "not_found")

        private, shared, other = hers.session(), hers.session(audience="team"), his.session()
        for stack, session in ((hers, private), (hers, shared), (his, shared), (his, other)):
            assert stack.ended(stack.send(session, "hello"))["status"] == "done"
        assert [OWN in sent(session) for session in (private, shared, other)] == [True, False, False]
        assert all(TEAM in sent(session) for session in (private, shared, other))

        given = anna.http.post(f"/v1/sessions/{shared}/include", json={"scope": "me", "entries": [2], "revision": 1})
        assert given.status_code == 202, given.text
        until(lambda: GIVEN in ben.http.get(f"/v1/sessions/{shared}/messages").text, 30, "what anna put there")
        assert his.ended(his.send(shared, "and now?"))["status"] == "done"
        assert GIVEN in sent(shared)
        assert OWN not in sent(shared)

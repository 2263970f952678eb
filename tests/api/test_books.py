"""What was said, sent and spent: messages, projection, calls, replay, ledger."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared.request import blocks
from tests.api.hand import Hand
from tests.api.serving import Api, Person


def _call(
    api: Api,
    turn: str,
    step: int,
    cost: str | None,
    *,
    status: str = "settled",
    purpose: str = "main",
    digest: str = "d",
) -> str:
    """A call as a worker books it; returns its id."""
    id_ = uuid4()
    api.execute(
        "insert into prefixes (digest, system_text, stable_length, context_length, tools_text)"
        " values ('p', %s, 0, 0, '[]') on conflict do nothing",
        blocks.join([blocks.text("You help.")]),
    )
    usage: tuple[Any, ...] = (None,) * 5 if status == "reserved" else (10, 20, 30, 4, 5)
    api.execute(
        "insert into calls (id, turn, session, step, purpose, status, provider, model, last_message, last_edit,"
        " prefix, params, marks, block_count, digest, estimate, max_tokens, reserved_usd, input_tokens, output_tokens,"
        " cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, cost_usd, holder, fence, ended_at)"
        " select %s, t.id, t.session, %s, %s, %s, 'anthropic', 'claude-sonnet-5-5', 0, 0, 'p', '', '[]', 1, %s, 100,"
        " 10, 0.5, %s, %s, %s, %s, %s, %s, %s, t.fence, case when %s = 'reserved' then null else clock_now() end"
        " from turns t where t.id = %s",
        id_, step, purpose, status, digest, *usage, None if cost is None else Decimal(cost), uuid4(), status,
        UUID(turn),
    )  # fmt: skip
    return str(id_)


@pytest.fixture
def turn(anna: Person, hand: Hand) -> str:
    turn = anna.turn(anna.session())
    hand.claim(turn)
    return turn


def test_a_transcript_is_read_in_pages_with_content_as_stored(anna: Person, hand: Hand, turn: str) -> None:
    for text in ("one", "two \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"), "three"):
        hand.commit(turn, text)
    session = anna.get(f"/v1/turns/{turn}").json()["session_id"]
    first = anna.get(f"/v1/sessions/{session}/messages", limit=2).json()
    rest = anna.get(f"/v1/sessions/{session}/messages", limit=2, cursor=first["next"]).json()
    found = [*first["items"], *rest["items"]]
    assert [one["content"] for one in found] == [[{"type": "text", "text": t}] for t in ("one", "two 😀", "three")]
    assert rest["next"] is None
    assert {(one["role"], one["author"], one["state"], one["turn_id"]) for one in found} == {
        ("assistant", "model", "live", turn)
    }


def test_a_page_of_large_messages_is_bounded_in_bytes(anna: Person, hand: Hand, turn: str) -> None:
    for _ in range(3):
        hand.commit(turn, "x" * 3_000_000)
    session = anna.get(f"/v1/turns/{turn}").json()["session_id"]
    seen, cursor, pages = 0, None, 0
    while True:
        page = anna.get(f"/v1/sessions/{session}/messages", **({"cursor": cursor} if cursor else {})).json()
        seen, pages, cursor = seen + len(page["items"]), pages + 1, page["next"]
        if cursor is None:
            break
    assert (seen, pages) == (3, 2)


def test_calls_tell_the_bill_and_unknown_costs_are_null(api: Api, anna: Person, turn: str) -> None:
    _call(api, turn, 1, None, status="lost")
    _call(api, turn, 1, "0.0125")
    _call(api, turn, 2, None, status="reserved")
    items = anna.get(f"/v1/turns/{turn}/calls").json()["items"]
    assert [(one["step"], one["status"], one["cost_usd"]) for one in items] == [
        (1, "lost", None), (1, "settled", 0.0125), (2, "reserved", None),
    ]  # fmt: skip
    assert items[1]["tokens"] == {
        "input": 10, "output": 20, "cache_read": 30, "cache_write": 9, "cache_write_5m": 4, "cache_write_1h": 5,
        "reasoning": 0,
    }  # fmt: skip
    assert items[2]["tokens"] is None
    view = anna.get(f"/v1/turns/{turn}").json()
    assert view["tokens"] == {"input": 20, "output": 40, "cache_read": 60, "cache_write": 18}


def test_a_person_gets_the_whole_of_what_the_transcript_has_a_preview_of(
    api: Api, anna: Person, ben: Person, turn: str
) -> None:
    session, whole, id_ = anna.get(f"/v1/turns/{turn}").json()["session_id"], "<b>\u202e 数据</b>" * 9_000, str(uuid4())
    api.execute(
        "insert into messages (session, turn, step, ordinal, author, role, content, fence)"
        " select session, id, 1, 1, 'tool', 'user', %s, fence from turns where id = %s",
        blocks.join([blocks.tool_result("c", "<b>")]), UUID(turn),
    )  # fmt: skip
    api.execute(
        "insert into artifacts (id, session, turn, step, ordinal, cause, characters, body)"
        " values (%s, %s, %s, 1, 1, 'tool_result', %s, %s)",
        UUID(id_), UUID(session), UUID(turn), len(whole), whole.encode(),
    )  # fmt: skip
    told = anna.get(f"/v1/sessions/{session}/messages").json()["items"][-1]
    assert told["preview_of"] == {"artifact": id_, "characters": len(whole)}
    answer = anna.get(f"/v1/sessions/{session}/artifacts/{id_}")
    assert (answer.status_code, answer.content) == (200, whole.encode())
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    pages = [
        anna.get(f"/v1/sessions/{session}/artifacts/{id_}", offset=at, limit=50_000) for at in range(0, 250_000, 50_000)
    ]
    assert {page.headers["x-nightshift-size"] for page in pages} == {str(len(whole.encode()))}
    assert b"".join(page.content for page in pages) == whole.encode()
    assert pages[-1].content == b""
    for wrong in ({"offset": -1}, {"limit": 0}, {"limit": 1 << 30}, {"offset": "x"}):
        assert anna.get(f"/v1/sessions/{session}/artifacts/{id_}", **wrong).status_code == 422
    other = anna.session()
    for person, where in ((ben, session), (anna, other)):
        assert person.get(f"/v1/sessions/{where}/artifacts/{id_}").status_code == 404
        assert person.get(f"/v1/sessions/{where}/artifacts/{id_}", limit=9).status_code == 404


def test_a_turn_with_an_unknown_part_has_an_unknown_cost(api: Api, anna: Person, turn: str) -> None:
    api.execute("update turns set spent_usd = 1, cost_unknown = true where id = %s", UUID(turn))
    assert anna.get(f"/v1/turns/{turn}").json()["cost_usd"] is None


def test_replay_gives_the_bytes_of_a_step_with_their_digest(api: Api, anna: Person, turn: str) -> None:
    call = _call(api, turn, 1, "0.1")
    answer = anna.get(f"/v1/turns/{turn}/replay", step=1)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-nightshift-call"] == call
    assert answer.headers["x-nightshift-agrees"] == "false"  # the digest in the row is not that of these bytes
    assert json.loads(answer.content)["system"] == [{"type": "text", "text": "You help."}]
    assert hashlib.sha256(answer.content).hexdigest()
    assert anna.get(f"/v1/turns/{turn}/replay").content == answer.content
    assert anna.get(f"/v1/turns/{turn}/replay", call=call).content == answer.content
    for wrong in ({"step": 2}, {"call": "x"}, {"call": str(uuid4())}):
        assert anna.get(f"/v1/turns/{turn}/replay", **wrong).status_code == 404


def test_the_projection_of_a_session_without_a_call_is_empty_and_then_what_the_model_sees(
    api: Api, anna: Person, hand: Hand, turn: str
) -> None:
    session = anna.get(f"/v1/turns/{turn}").json()["session_id"]
    path = f"/v1/sessions/{session}/messages"
    assert anna.get(path, view="projection").json() == {
        "items": [], "next": None, "system": [], "tools": [], "estimate": 0, "rewound": [],
    }  # fmt: skip
    _call(api, turn, 1, "0.1")
    hand.commit(turn, "one")
    hand.commit(turn, "two")
    api.execute("update sessions set prefix = 'p' where id = %s", UUID(session))
    found = anna.get(path, view="projection").json()
    assert found["system"] == [{"type": "text", "text": "You help."}]
    assert [(one["role"], [block["text"] for block in one["content"]]) for one in found["items"]] == [
        ("assistant", ["one", "two"])
    ]


@pytest.mark.parametrize("by", ["day", "principal", "session", "job", "model", "purpose"])
def test_the_ledger_counts_unknown_costs_and_never_takes_them_for_zero(
    api: Api, anna: Person, ben: Person, turn: str, by: str
) -> None:
    _call(api, turn, 1, "0.25")
    _call(api, turn, 2, "0.50")
    known = anna.get("/v1/ledger", by=by).json()
    assert (known["by"], known["total"]["cost_usd"], known["total"]["known_usd"]) == (by, 0.75, 0.75)
    _call(api, turn, 3, None)
    _call(api, turn, 4, None, status="reserved")
    found = anna.get("/v1/ledger", by=by).json()
    (row,) = found["items"]
    assert (row["calls"], row["unknown_calls"], row["open_calls"]) == (4, 1, 1)
    assert (row["cost_usd"], row["known_usd"], row["reserved_usd"]) == (None, 0.75, 0.5)
    assert row["tokens"] == {"input": 30, "output": 60, "cache_read": 90, "cache_write": 27}
    assert found["total"]["cost_usd"] is None
    assert ben.get("/v1/ledger", by=by).json()["items"] == []


def test_an_admin_sees_all_sums_and_no_names_of_private_sessions(
    api: Api, anna: Person, admin: Person, turn: str
) -> None:
    _call(api, turn, 1, "0.25")
    session = anna.get(f"/v1/turns/{turn}").json()["session_id"]
    by_person = admin.get("/v1/ledger", by="principal").json()["items"]
    assert 0.25 in [row["known_usd"] for row in by_person if row["label"] == anna.name]
    found = admin.get("/v1/ledger", by="session")
    assert session not in found.text
    assert [row["label"] for row in found.json()["items"] if row["key"] is None] == ["private sessions of others"]


def test_the_ledger_can_be_bounded_in_time(anna: Person, api: Api, turn: str) -> None:
    _call(api, turn, 1, "0.25")
    assert anna.get("/v1/ledger", since="2030-01-01T00:00:00Z").json()["total"]["calls"] == 0
    assert anna.get("/v1/ledger", until="2030-01-01T00:00:00Z").json()["total"]["calls"] == 1
    assert anna.get("/v1/ledger", until="2030-01-01T00:00:00").json()["code"] == "input_invalid"
    assert anna.get("/v1/ledger", by="colour").json()["code"] == "input_invalid"

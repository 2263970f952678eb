"""Proves the control surface: ledger, scripts and whom they answer, capture, hold, waits, reset, a clean stop."""

import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rehearsal.served import HEADER, TOKEN, Json, Served, serve


def ask(text: str, session: str | None = "s", **more: Any) -> Json:
    metadata = {} if session is None else {"metadata": {"user_id": session}}
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": text}],
        **metadata,
        **more,
    }


def said(provider: Served, text: str, session: str | None = "s") -> str:
    answer = provider.raw(ask(text, session))
    assert answer.status_code == 200, answer.text
    return answer.json()["content"][0]["text"]


def test_replies_come_in_order_and_each_session_has_its_own_place(provider: Served) -> None:
    provider.script(name="abc", replies=[{"text": "a"}, {"text": "b"}])
    assert [said(provider, "script:abc", session) for session in ("s", "t", "s", "t")] == ["a", "a", "b", "b"]
    assert "Rehearsal" in said(provider, "script:abc")


def test_a_script_that_repeats_begins_again(provider: Served) -> None:
    provider.script(name="ab", replies=[{"text": "a"}, {"text": "b"}], repeat=True)
    assert [said(provider, "script:ab") for _ in range(5)] == ["a", "b", "a", "b", "a"]


def test_the_most_particular_script_answers(provider: Served) -> None:
    provider.script(replies=[{"text": "anybody"}], repeat=True)
    provider.script(match={"contains": "weather"}, replies=[{"text": "matched"}], repeat=True)
    provider.script(name="named", replies=[{"text": "named"}], repeat=True)
    provider.script(session="s", replies=[{"text": "its own"}])
    told = [said(provider, text) for text in ("script:named weather", "script:named weather", "weather", "hello")]
    assert told == ["its own", "named", "matched", "anybody"]
    provider.http.delete("/rehearsal/script")
    assert "Rehearsal" in said(provider, "hello")


def test_the_latest_name_in_a_conversation_counts(provider: Served) -> None:
    provider.script(name="one", replies=[{"text": "1"}], repeat=True)
    provider.script(name="two", replies=[{"text": "2"}], repeat=True)
    messages = [
        {"role": "user", "content": "script:one"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "script:two"},
    ]
    assert provider.raw({**ask(""), "messages": messages}).json()["content"][0]["text"] == "2"


WRONG: list[Json] = [
    {},
    {"replies": []},
    {"replies": [{"txt": "a"}]},
    {"replies": [{"text": 5}]},
    {"replies": [{"fault": {"kind": "fire"}}]},
    {"replies": [{"fault": {"kind": "status", "code": 5}}]},
    {"replies": [{"tools": [{"input": {}}]}]},
    {"policy": "guess"},
    {"replies": [{"text": "a"}], "wen": 1},
    {"replies": [{"text": "a"}], "match": {}},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_script_is_refused_with_a_sentence(provider: Served, wrong: Json) -> None:
    answer = provider.http.post("/rehearsal/script", json=wrong)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_the_ledger_tells_each_call_s_bill_and_whether_it_extended_the_last(provider: Served) -> None:
    provider.script(replies=[{"text": "so"}], repeat=True)
    first = ask("first")
    longer = [*first["messages"], {"role": "assistant", "content": "so"}, {"role": "user", "content": "on"}]
    other = [{"role": "user", "content": "First"}, *longer[1:]]
    for messages in (first["messages"], longer, longer, other, first["messages"]):
        provider.raw({**first, "messages": messages}, {"x-stainless-retry-count": "1"})
    calls = provider.ledger("s")
    assert [call["index"] for call in calls] == [0, 1, 2, 3, 4]
    assert [call["extended"] for call in calls] == [None, True, True, False, False]
    assert [call["compared_with"] for call in calls] == [None, 0, 1, 2, 3]
    assert [call["extends_call"] for call in calls] == [None, 0, 1, None, 0]
    assert (calls[3]["differs_at"], calls[3]["difference"]) == (
        1,
        "messages.0.content.0 (string) where call 2 had messages.0.content.0 (string)",
    )
    assert calls[0]["retry_count"] == "1"
    assert calls[0]["answered_by"] == "script #1 1"
    assert calls[0]["usd"] == pytest.approx((calls[0]["input"] * 2 + calls[0]["output"] * 10) / 1e6)
    assert provider.ledger("another") == []
    total = provider.http.get("/rehearsal/ledger").json()["usd"]
    assert total == pytest.approx(sum(call["usd"] for call in calls))


def test_a_request_that_is_shorter_than_the_last_is_told_where_it_ends(provider: Served) -> None:
    blocks = [{"type": "text", "text": f"{at}"} for at in range(3)]
    for count in (3, 2):
        provider.raw({**ask(""), "messages": [{"role": "user", "content": blocks[:count]}]})
    assert provider.ledger("s")[1]["difference"] == "ends before messages.0.content.2 (text) of call 0"


def test_calls_of_one_session_at_once_are_marked_as_overlapping(provider: Served) -> None:
    provider.control("hold", hold=True)
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(provider.raw, ask("x", session)) for session in ("s", "s", "t")]
        provider.wait(inflight=3)
        assert {call["session"] for call in provider.http.get("/rehearsal/inflight").json()["calls"]} == {"s", "t"}
        provider.control("hold", hold=False)
        assert [answer.result().status_code for answer in answers] == [200] * 3
    assert [call["overlap"] for call in provider.ledger("s")] == [True, True]
    assert [call["overlap"] for call in provider.ledger("t")] == [False]


def test_a_call_that_follows_a_hang_up_at_once_does_not_overlap(provider: Served) -> None:
    host, port = provider.url.removeprefix("http://").split(":")
    body = json.dumps(ask("x")).encode()
    lines = (
        "POST /v1/messages HTTP/1.1",
        "x-api-key: k",
        "anthropic-version: 2026-10-21",
        f"content-length: {len(body)}",
    )
    sent = "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body
    provider.control("hold", hold=True)
    held = socket.create_connection((host, int(port)))
    held.sendall(sent)
    for count in range(1, 20):
        provider.wait(calls=count, inflight=1)
        fresh = socket.create_connection((host, int(port)))
        held.close()
        fresh.sendall(sent)
        held = fresh
    provider.wait(calls=20, inflight=1)
    held.close()
    assert [call["overlap"] for call in provider.ledger("s")] == [False] * 20


def test_wait_gives_up_with_408_and_what_it_saw(provider: Served) -> None:
    answer = provider.http.get("/rehearsal/wait", params={"calls": 1, "timeout_s": 0.05})
    assert (answer.status_code, answer.json()["calls"]) == (408, 0)
    assert provider.http.get("/rehearsal/wait").status_code == 400


def test_bodies_are_written_only_where_and_while_asked_for(provider: Served, tmp_path: Path) -> None:
    where = tmp_path / "kept"
    said(provider, "before")
    provider.control("capture", directory=str(where), headers=True)
    raw = (
        b'{"model": "claude-sonnet-5-5","max_tokens":5,  "messages":[{"role":"user","content":"\\u00e9 1e2"}],'
        b'"metadata":{"user_id":"a/b"}}'
    )
    provider.raw(raw)
    provider.raw(b"{broken")
    provider.control("capture", directory=None)
    said(provider, "after")
    assert sorted(path.name for path in where.iterdir()) == [
        "000001-a_b.headers.json",
        "000001-a_b.json",
        "000002-none.headers.json",
        "000002-none.json",
    ]
    assert (where / "000001-a_b.json").read_bytes() == raw
    assert "x-api-key" not in json.loads((where / "000001-a_b.headers.json").read_text())


def test_reset_forgets_entries_calls_and_scripts(provider: Served) -> None:
    provider.script(replies=[{"text": "a"}], repeat=True)
    long = ask("a long word " * 500, cache_control={"type": "ephemeral"})
    provider.raw(long)
    provider.control("reset")
    assert provider.http.get("/rehearsal/health").json() == {
        "status": "ok", "calls": 0, "in_flight": 0, "cache_entries": 0, "offset_s": 0.0,
    }  # fmt: skip
    assert provider.raw(long).json()["usage"]["cache_read_input_tokens"] == 0
    assert provider.ledger()[0]["index"] == 0


ROUTES = (
    "GET ledger", "GET inflight", "GET wait", "GET health", "POST script", "DELETE script", "POST capture", "POST hold",
    "POST clock", "POST window", "POST reset", "GET nothing",
)  # fmt: skip


@pytest.mark.parametrize(
    "token",
    [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ü", TOKEN.swapcase()],
    ids=["none", "empty", "wrong", "shorter", "longer", "not ascii", "other case"],
)
def test_nobody_without_the_token_sees_or_moves_anything(provider: Served, token: str | None) -> None:
    headers = {} if token is None else {HEADER.encode(): token.encode("latin-1")}
    with httpx.Client(base_url=provider.url, headers=headers) as stranger:
        for route in ROUTES:
            method, name = route.split()
            body = {"replies": [{"text": "from a stranger"}], "hold": True, "directory": "/tmp/never", "offset_s": 9}
            answer = stranger.request(method, f"/rehearsal/{name}", json=body if method == "POST" else None)
            assert answer.status_code == 401, route
            assert "NIGHTSHIFT_REHEARSAL_TOKEN" in answer.json()["error"]
    assert "stranger" not in provider.raw(ask("hello")).text
    assert not Path("/tmp/never").exists()


def test_the_wire_asks_for_no_token(provider: Served) -> None:
    with httpx.Client(base_url=provider.url) as plain:
        headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
        assert plain.post("/v1/messages", json=ask("hello"), headers=headers).status_code == 200
        assert plain.get("/v1/models", headers=headers).status_code == 200


def test_without_a_token_of_its_own_the_control_surface_is_closed() -> None:
    with serve(token="") as closed:
        for token in (TOKEN, ""):
            answer = closed.http.get("/rehearsal/health", headers={HEADER: token})
            assert answer.status_code == 401
        assert closed.raw(ask("hello")).status_code == 200


def test_it_stops_cleanly_on_sigterm_with_calls_in_flight(tmp_path: Path) -> None:
    socket_path = tmp_path / "r.sock"
    with serve(None, "--unix", str(socket_path)) as provider, ThreadPoolExecutor(1) as pool:
        way = httpx.HTTPTransport(uds=str(socket_path))
        with httpx.Client(transport=way, base_url="http://r", headers={HEADER: TOKEN}) as local:
            assert local.get("/rehearsal/health").status_code == 200
        provider.control("hold", hold=True)
        hanging = pool.submit(provider.raw, ask("x"))
        provider.wait(inflight=1)
        provider.process.send_signal(signal.SIGTERM)
        assert provider.process.wait(5) == 0
        with pytest.raises(httpx.TransportError):
            hanging.result()
    assert not socket_path.exists()


def test_an_address_in_use_is_said_and_the_supervisor_told_not_to_try_again(provider: Served) -> None:
    port = provider.url.rpartition(":")[2]
    with pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1:{port}"), serve(None, "--port", port):
        pass

"""Proves each scripted fault as the SDK, or a bare client, meets it."""

from typing import Any

import anthropic
import httpx
import pytest

from tests.rehearsal.served import Json, Served

OVERFLOW = "prompt is too long: 1005000 tokens > 1000000 maximum"


def ask(text: str, stream: bool = True) -> Any:
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 2_000,
        "messages": [{"role": "user", "content": text}],
        "stream": stream,
        "metadata": {"user_id": "s"},
    }


def fault(provider: Served, **given: Any) -> None:
    provider.script(name="fault", replies=[{"text": "abcdef", "chunks": 3, "fault": given}, {"text": "well again"}])


def read(provider: Served) -> tuple[str, list[str]]:
    """The text and the event names of a stream read to whatever end it has."""
    text, names = "", list[str]()
    for event in provider.events(ask("script:fault")):
        names.append(event.type)
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            text += event.delta.text
    return text, names


def well(provider: Served) -> bool:
    """The next call of the same session goes on in the script."""
    return provider.raw(ask("script:fault", stream=False)).json()["content"][0]["text"] == "well again"


STATUSES: list[tuple[Json, type[anthropic.APIStatusError], str, str | None]] = [
    ({"status": 429, "retry_after": 2}, anthropic.RateLimitError, "rate_limit_error", "2"),
    ({"status": 429, "message": "spend cap"}, anthropic.RateLimitError, "rate_limit_error", None),
    ({"status": 529}, anthropic.OverloadedError, "overloaded_error", None),
    ({"status": 500}, anthropic.InternalServerError, "api_error", None),
    ({"status": 400, "error_type": "billing_error"}, anthropic.BadRequestError, "billing_error", None),
]


@pytest.mark.parametrize(("given", "kind", "name", "retry_after"), STATUSES)
def test_a_status_is_answered_in_the_service_s_shape(
    provider: Served, given: Json, kind: type[anthropic.APIStatusError], name: str, retry_after: str | None
) -> None:
    fault(provider, kind="status", **given)
    with pytest.raises(kind) as told:
        provider.events(ask("script:fault"))
    assert told.value.response.headers.get("retry-after") == retry_after
    body: Any = told.value.body
    assert body["error"]["type"] == name
    (call,) = provider.ledger("s")
    assert (call["state"], call["status"], call["usd"]) == ("fault", given["status"], None)
    assert well(provider)


def test_an_overflow_says_that_the_prompt_is_too_long(provider: Served) -> None:
    fault(provider, kind="overflow")
    with pytest.raises(anthropic.BadRequestError, match=OVERFLOW):
        provider.events(ask("script:fault"))


def test_a_cut_closes_the_socket_in_the_middle(provider: Served) -> None:
    fault(provider, kind="cut", after_chunks=2)
    with pytest.raises(httpx.RemoteProtocolError):
        provider.raw(ask("script:fault"))
    (call,) = provider.ledger("s")
    assert (call["state"], call["status"]) == ("fault", 200)
    assert call["usd"] > 0
    assert well(provider)


def test_a_clean_end_without_the_last_event_is_no_error_to_the_sdk(provider: Served) -> None:
    fault(provider, kind="clean_eof", after_chunks=2)
    text, names = read(provider)
    assert text == "abcd"
    assert "message_stop" not in names
    assert well(provider)


def test_an_error_event_comes_inside_a_200(provider: Served) -> None:
    fault(provider, kind="error_event", after_chunks=1)
    with pytest.raises(anthropic.APIStatusError) as told:
        read(provider)
    assert (told.value.status_code, told.value.type) == (200, "overloaded_error")
    assert well(provider)


def test_a_stall_is_silence_and_then_the_rest(provider: Served) -> None:
    fault(provider, kind="stall", after_chunks=1, seconds=0.4)
    text, names = read(provider)
    assert (text, names[-1]) == ("abcdef", "message_stop")
    assert provider.ledger("s")[0]["duration_s"] > 0.4


def test_a_stalled_call_whose_client_leaves_is_ended_at_once(provider: Served) -> None:
    fault(provider, kind="stall", after_chunks=0)
    with provider.events(ask("script:fault")) as stream:
        next(iter(stream))
        assert len(provider.http.get("/rehearsal/inflight", params={"session": "s"}).json()["calls"]) == 1
        stream.close()
    assert provider.wait(inflight=0, session="s")["ended"] == 1
    assert provider.ledger("s")[0]["state"] == "client_closed"


def test_missing_usage_is_missing_everywhere(provider: Served) -> None:
    fault(provider, kind="no_usage")
    raw = provider.raw(ask("script:fault")).text
    assert "usage" not in raw
    assert "message_stop" in raw
    assert provider.ledger("s")[0]["usd"] > 0


def test_a_page_a_redirect_and_nothing(provider: Served) -> None:
    fault(provider, kind="html", status=502)
    page = provider.raw(ask("script:fault"))
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    provider.script(name="fault", replies=[{"fault": {"kind": "redirect", "location": "https://example.org/"}}])
    moved = provider.raw(ask("script:fault"))
    assert (moved.status_code, moved.headers["location"]) == (302, "https://example.org/")
    fault(provider, kind="nothing")
    with pytest.raises(anthropic.APIConnectionError):
        provider.events(ask("script:fault"))
    assert well(provider)


def test_a_flood_is_as_large_as_asked_and_well_formed(provider: Served) -> None:
    fault(provider, kind="flood", bytes=2_000_000, after_chunks=1)
    text, names = read(provider)
    assert len(text) > 2_000_000
    assert names[-1] == "message_stop"


def test_garbage_is_an_event_that_is_no_json(provider: Served) -> None:
    fault(provider, kind="garbage", after_chunks=1)
    assert provider.raw(ask("script:fault")).text.endswith("data: {not json\n\n")


def test_a_fault_in_a_plain_reply_strikes_too(provider: Served) -> None:
    fault(provider, kind="cut")
    with pytest.raises(anthropic.APIConnectionError):
        provider.create(ask("script:fault", stream=False))
    for kind in ("clean_eof", "garbage"):
        fault(provider, kind=kind)
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|char"):
            provider.create(ask("script:fault", stream=False))
    fault(provider, kind="flood", bytes=1_600_000)
    assert len(provider.raw(ask("script:fault", stream=False)).json()["content"][0]["text"]) >= 1_600_000
    fault(provider, kind="error_event")
    with pytest.raises(anthropic.OverloadedError):
        provider.create(ask("script:fault", stream=False))

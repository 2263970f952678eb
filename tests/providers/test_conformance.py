"""Each wire, streamed and whole, through the same faults of the same provider: one table of what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shared.request import blocks
from tests.providers.caller import client_of
from tests.providers.test_wires_with_rehearsal import Talk, at
from tests.rehearsal.served import Served, serve
from workers.providers import wire
from workers.providers.failures import classify

WIRES = [("anthropic", "claude-sonnet-5-5"), ("azure", "gpt-6.1-sol"), ("openai", "gpt-6.1-sol")]
RETRIED = (408, 409, 429, 500, 502, 503, 504, 529)
STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
FAULTS: dict[str, tuple[dict[str, Any], bool]] = {
    # name: (the fault as the provider is told it, whether another try may succeed)
    **{f"HTTP {status}": ({"kind": "status", "status": status}, status in RETRIED) for status in STATUSES},
    "a 429 that says when": ({"kind": "status", "status": 429, "retry_after": 7}, True),
    "money, as a 429": ({"kind": "status", "status": 429, "message": "insufficient_quota: check your billing"}, False),
    "a page with a 502": ({"kind": "html", "status": 502}, True),
    "a page with a 404": ({"kind": "html", "status": 404}, False),
    "a page with a 200": ({"kind": "html", "status": 200}, False),
    "a redirect": ({"kind": "redirect"}, False),
    "a hang up": ({"kind": "nothing"}, True),
    "too long a prompt": ({"kind": "overflow"}, False),
    "a cut": ({"kind": "cut"}, True),
    "a clean end in the middle": ({"kind": "clean_eof"}, True),
    "no JSON": ({"kind": "garbage"}, True),
    "an error within": ({"kind": "error_event"}, True),
}
WHOLE = {"a clean end in the middle": False, "no JSON": False}
"""Of a whole answer: half a body, or none that is JSON, is no answer of the provider's, and is not asked for again."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("name", "model"), WIRES, ids=[name for name, _ in WIRES])
def test_every_fault_is_one_error_that_says_what_to_do_and_the_next_call_goes_well(
    provider: Served, name: str, model: str, streamed: bool
) -> None:
    to = at(provider, name)
    table: dict[str, bool] = {}
    with client_of(provider.url, declared=to) as client:
        for fault, (told, _) in FAULTS.items():
            provider.control("reset")
            provider.script(replies=[{"text": "a" * 900, "fault": told}, {"text": "next"}])
            talk = Talk(to, model, stream=streamed, system="Be brief.")
            talk.add("user", blocks.text("go"))
            with pytest.raises(wire.CallFailed) as caught:
                talk.call(client)
            error = caught.value
            recovery = classify(error)
            assert (recovery.retry, recovery.fatal or recovery.compress or recovery.spill) in (
                (True, False),
                (False, True),
            ), fault
            assert error.message, fault
            assert error.code, fault
            assert recovery.wait_s == (7.0 if fault == "a 429 that says when" else None), fault
            assert recovery.compress is (fault == "too long a prompt"), fault
            table[fault] = recovery.retry
            assert talk.call(client)[0].text == "next", fault
    assert table == {fault: retry for fault, (_, retry) in FAULTS.items()} | ({} if streamed else WHOLE)

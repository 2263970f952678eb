"""What a provider says of a window when a prompt is too long: believed when two of its errors agree, and where neither
the settings nor the catalogue know better."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from shared import windows as words
from shared.models import Limits
from shared.providers import resolve
from shared.store import windows
from tests.ground import Ground, Rehearsal, ground

SAID = [
    ("prompt is too long: 205000 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000", 200_000),
    ("This model's maximum context length is 8192 tokens. However, you requested 9001 tokens", 8_192),
    ("This model's maximum context length is 131,072 tokens", 131_072),
    ("The input token count (1189001) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
    ("the request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192),
    ('{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}', 8_192),
    ("InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129_024),
    ("Trying to keep the first 9000 tokens when the context length is only 4096 tokens", 4_096),
    ("the prompt is too long", None),
    ("maximum context length is 7 tokens", None),
    ("maximum context length is 99999999999999 tokens", None),
    ("", None),
]


@pytest.mark.parametrize(("said", "window"), SAID)
def test_the_window_is_read_out_of_what_providers_say(said: str, window: int | None) -> None:
    assert words.told(said) == window


@pytest.fixture
def local(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Any:
    provider.reset()
    with ground(database_url, redis_url, provider.url, tmp_path, provider="custom", model="smollm2") as worker:
        yield worker


def _learn(worker: Ground, said: str, model: str, call: UUID | None = None) -> Limits | None:
    settings = worker.settings
    return worker.database.read(lambda c: windows.learn(c, settings, "custom", model, call or uuid4(), said))


def _is(worker: Ground, model: str) -> Limits:
    return windows.of(worker.database, worker.settings, "custom", model)


def test_a_smaller_window_is_believed_when_two_errors_agree_and_a_larger_one_at_once(local: Ground) -> None:
    model = f"m-{uuid4()}"
    call = uuid4()
    assert _learn(local, "maximum context length is 8192", model, call) is None
    assert _learn(local, "maximum context length is 8192", model, call) is None, "one error that was written twice"
    assert _is(local, model).known is False
    assert _learn(local, "maximum context length is 4096", model) is None, "two that do not agree"
    found = _learn(local, "maximum context length is 4096", model)
    assert found == _is(local, model) == Limits(4_096, 1_024, known=True)
    assert _is(local, model).source == "learned: maximum context length is 4096"
    grown = _learn(local, "maximum context length is 16384", model)
    assert grown is not None
    assert grown.window == 16_384
    shrunk = _learn(local, "maximum context length is 4096", model)
    assert shrunk is not None
    assert shrunk.window == 16_384, "one error alone makes nothing smaller"


def test_what_is_configured_or_in_the_catalogue_is_never_learned_over(local: Ground) -> None:
    for _ in range(2):
        assert _learn(local, "maximum context length is 4096", "claude-sonnet-5-5") is None
    assert _is(local, "claude-sonnet-5-5") == resolve.limits(local.settings, "custom", "claude-sonnet-5-5")
    told = local.settings.model_copy(update={"context_window": 32_000})
    for _ in range(2):
        _learn(local, "maximum context length is 4096", "told")
    found = windows.of(local.database, told, "custom", "told")
    assert (found.window, found.source) == (32_000, "NIGHTSHIFT_CONTEXT_WINDOW")


def test_a_turn_that_is_too_long_twice_leaves_its_worker_with_the_window_that_the_provider_told(
    local: Ground, provider: Rehearsal
) -> None:
    model = "smollm2"
    window = next(seen for said, seen in SAID if said.startswith("prompt is too long"))
    fault = {"kind": "status", "status": 400, "message": SAID[0][0]}
    for _ in range(2):
        provider.script([{"text": "x", "fault": fault}])
        turn = local.turn(local.session(), "go")
        local.look()
        assert local.view(turn)["error_code"] == "context_overflow"
    assert (_is(local, model).window, _is(local, model).known) == (window, True)

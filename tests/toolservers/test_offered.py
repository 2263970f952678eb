"""Which tools of a server are offered, and when one that failed is tried again: tables."""

from __future__ import annotations

import pytest

from shared.mcp import McpServer
from shared.settings import Settings
from tests.toolservers import hostile
from workers.mcp import offered, told
from workers.mcp.breaker import FAILURES, FIRST_S, MOST_S, Breaker
from workers.mcp.offered import Offer

CONFIG = McpServer(command=("x",))


def listed(kind: str) -> list[dict[str, object]]:
    from mcp.types import Tool

    return [told.tool(Tool.model_validate(entry)) for entry in hostile.TOOLS[kind]]


def test_a_server_that_lies_about_its_schemas_loses_those_tools_and_keeps_the_others() -> None:
    found = offered.judge("bad", CONFIG, [*listed("schemas"), {"name": "array", "schema": '{"type": "array"}'}])
    assert [offer.name for offer in found.offers] == ["mcp_bad_fine", "mcp_bad_shared", "mcp_bad_speaks"]
    assert dict(found.left_out) == {
        "a name with blanks": "its name is none that a model can call",
        "array": "its schema is not that of an object",
        "cycle": "its schema refers to itself",
        "deep": "its schema is more than 12 levels deep",
        "elsewhere": "its schema refers to what it does not define",
        "itself": "its schema refers to itself",
        "long": "its schema is longer than 8,000 characters",
        "n" * 80: "its name is none that a model can call",
        "whispers": "its schema reads like an instruction",
    }


def test_a_description_that_reads_like_an_instruction_enters_no_prompt() -> None:
    (speaks,) = [offer for offer in offered.judge("bad", CONFIG, listed("schemas")).offers if offer.tool == "speaks"]
    assert speaks.description == (
        "[the server's description is left out: it reads like an instruction to ignore its instructions]"
    )


def test_only_the_tools_that_the_operator_names_are_offered_and_one_that_is_missing_is_told() -> None:
    config = McpServer(command=("x",), tools=("fine", "gone"))
    found = offered.judge("a", config, listed("schemas"))
    assert found.offers == (Offer("mcp_a_fine", "fine", "does things", hostile.PLAIN),)
    assert dict(found.left_out) == {"gone": "the server has no such tool"}


def test_a_server_has_a_bounded_number_of_tools() -> None:
    found = offered.judge("a", CONFIG, listed("many"))
    assert len(found.offers) == offered.MOST_TOOLS
    assert len(found.left_out) == 500 - offered.MOST_TOOLS


def test_after_three_failures_a_server_is_left_alone_for_longer_and_longer_and_one_caller_tries() -> None:
    breaker = Breaker()
    for _ in range(FAILURES - 1):
        breaker = breaker.failed(100.0)
        assert breaker.may_try(100.0)
    breaker = breaker.failed(100.0)
    assert not breaker.may_try(100.0 + FIRST_S - 1)
    assert breaker.may_try(100.0 + FIRST_S)
    trying = breaker.tried(200.0, 20.0)
    assert not trying.may_try(219.0)
    waits = [breaker.shut_until - 100.0]
    for _ in range(10):
        breaker = breaker.failed(0.0)
        waits.append(breaker.shut_until)
    assert waits == sorted(waits)
    assert waits[-1] == MOST_S
    assert breaker.worked() == Breaker()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('{"a": {}}', "a command or a url"),
        ('{"a": {"command": ["x"], "url": "http://b/"}}', "a command or a url"),
        ('{"a": {"url": "file:///etc"}}', "http:// or https://"),
        ('{"a": {"url": "http://b/", "env": {"A": "b"}}}', "env goes with a command"),
        ('{"a_b": {"command": ["x"]}}', "small letters"),
        ('{"a": {"command": ["x"], "surprise": 1}}', "surprise"),
        ("nonsense", "NIGHTSHIFT_MCP"),
    ],
)
def test_a_wrong_server_stops_the_start_by_name_and_shows_no_value(value: str, why: str) -> None:
    from shared import settings
    from shared.errors import SettingsError

    with pytest.raises(SettingsError) as refused:
        settings.load({"NIGHTSHIFT_MCP": value})
    assert "NIGHTSHIFT_MCP" in refused.value.message
    assert "command" not in value or '["x"]' not in refused.value.message
    assert why in refused.value.message or why == "surprise"


def test_servers_stand_in_the_settings_as_a_table() -> None:
    assert Settings.model_validate({"mcp": {"a": {"command": ["x", "y"]}}}).mcp["a"].command == ("x", "y")

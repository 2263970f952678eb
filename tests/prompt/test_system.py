"""The system prompt: tiers and their lengths, what may stand in which, and that it has no clock and no path of a
host."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bpe_openai
import pytest

from shared.request import blocks
from shared.request.projection import Prefix, stable_is_proved
from workers.prompt import stable
from workers.prompt.prefix import prefix_digest
from workers.prompt.system import PromptInputs, SystemPrompt, build, start_date
from workers.tools import registry

STARTED = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)


def inputs(workspace: Path) -> PromptInputs:
    return PromptInputs("s-1", "claude-opus-5-5", "anthropic", STARTED, "Europe/Berlin", workspace)


def tiers(prompt: SystemPrompt) -> list[str]:
    return [blocks.text_of(block) for block in blocks.split(prompt.system_text)]


def proved(prompt: SystemPrompt) -> bool:
    return stable_is_proved(Prefix("d", prompt.system_text, prompt.stable_length, prompt.context_length, "[]"))


def test_the_lengths_are_those_of_the_tiers_as_sent(tmp_path: Path) -> None:
    prompt = build(replace(inputs(tmp_path), caller_text="Wir prüfen Übergaben 🌙."))
    first, second, third = tiers(prompt)
    assert (prompt.stable_length, prompt.context_length) == (len(first), len(second))
    assert second == "Wir prüfen Übergaben 🌙."
    assert third.startswith("Session s-1 on claude-opus-5-5 (anthropic)")
    assert proved(prompt)


def test_a_tier_that_is_empty_is_no_block(tmp_path: Path) -> None:
    prompt = build(inputs(tmp_path))
    assert len(tiers(prompt)) == 2
    assert prompt.context_length == 0


def test_the_stable_tier_is_the_same_for_every_session_of_a_profile(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Keep it short.")
    one = build(inputs(tmp_path))
    other = build(
        PromptInputs(
            "s-2",
            "gpt-6",
            "openai",
            STARTED + timedelta(days=9),
            "Asia/Tokyo",
            tmp_path / "none",
            tmp_path,
            caller_text="x",
        )
    )
    assert tiers(one)[0] == tiers(other)[0]
    assert tiers(one)[1:] != tiers(other)[1:]


def test_what_differs_by_session_stands_only_in_the_last_tier(tmp_path: Path) -> None:
    *front, last = tiers(build(inputs(tmp_path)))
    for word in ("s-1", "claude-opus-5-5", "2026", "Berlin"):
        assert word in last
        assert all(word not in tier for tier in front)


def test_no_path_of_the_host_enters_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Keep it short.")
    assert str(tmp_path) not in build(replace(inputs(tmp_path), attached=tmp_path / "folder")).system_text


def test_it_names_the_day_on_which_the_conversation_started_where_the_team_is(tmp_path: Path) -> None:
    assert start_date(STARTED, "Europe/Berlin") == "Monday, 2026-11-30"
    assert start_date(STARTED, "America/New_York") == "Sunday, 2026-11-29"
    assert "Monday, 2026-11-30 (Europe/Berlin)" in tiers(build(inputs(tmp_path)))[-1]
    with pytest.raises(ValueError, match="zone"):
        start_date(STARTED.replace(tzinfo=None), "Europe/Berlin")


def test_two_builds_are_equal_to_the_byte(tmp_path: Path) -> None:
    assert build(inputs(tmp_path)) == build(inputs(tmp_path))


def test_a_profiles_identity_stands_in_for_the_houses(tmp_path: Path) -> None:
    prompt = build(replace(inputs(tmp_path), identity="You are the ledger clerk."))
    assert tiers(prompt)[0].startswith("You are the ledger clerk.\n\n# How you work")
    assert stable.IDENTITY not in prompt.system_text


def test_guidance_names_only_the_tools_that_are_there() -> None:
    assert "todo" not in stable.text("", ["read_file"])
    assert "# Tools" not in stable.text("", [])
    assert set(stable.TOOL_NOTES) <= set(registry.TOOLS)
    assert stable.text("", ["todo", "git_log"]) == stable.text("", ["git_log", "todo"])


def test_the_attached_folder_is_told_by_its_place_in_the_workspace(tmp_path: Path) -> None:
    assert "attached at input/" in tiers(build(replace(inputs(tmp_path), attached=tmp_path)))[1]
    assert len(tiers(build(replace(inputs(tmp_path), attached=tmp_path, tools=())))) == 2


def test_bad_characters_change_neither_encoding_nor_lengths(tmp_path: Path) -> None:
    prompt = build(replace(inputs(tmp_path), identity="a\x00b\ud83d\ude00c", caller_text="\ud800\u202e"))
    prompt.system_text.encode()
    assert "\\u0000" not in prompt.system_text
    assert prompt.context_length == len(tiers(prompt)[1])
    assert proved(prompt)


def test_stable_tier_and_the_tools_stay_small_for_every_session_pays_for_them() -> None:
    tools = registry.schema_text(registry.TOOLS)
    count = len(bpe_openai.get_encoding("o200k_base").encode(stable.text("", tuple(registry.TOOLS)) + tools))
    assert len(registry.TOOLS) <= 24
    assert count * 1.3 < 6_000


def test_the_digest_names_what_is_sent_and_where_the_border_is() -> None:
    assert prefix_digest("[]", "[]") == prefix_digest("[]", "[]")
    assert len({prefix_digest(*pair) for pair in (("ab", "c"), ("b", "ca"), ("", "cab"), ("cab", ""))}) == 4

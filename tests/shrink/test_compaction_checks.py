"""What a summariser may give back, and why most of it is not believed."""

from __future__ import annotations

import pytest

from tests.shrink.compacting import GOOD
from workers.compaction import checks, framed, instruction, rest
from workers.compaction.checks import Given
from workers.providers.failures import Recovery
from workers.providers.replies import Reasoning, Reply, ReplyBlock, Text, ToolCall

LONG = "\n".join(f"{n}: the quick brown fox jumps over the lazy dog and {n * 7919} more" for n in range(400))


def reply(*parts: ReplyBlock, stop: str = "end_turn", refusal: str | None = None) -> Reply:
    return Reply(parts, stop, None, "req", None, 1.0, "m", "msg", refusal)


def given(answer: Reply, middle: int = 20_000, sent: str = LONG) -> Given:
    return Given(answer, 2_000, middle, "claude-sonnet-5-5", [sent])


CASES: list[tuple[str | None, Given]] = [
    (None, given(reply(Text(GOOD)))),
    (None, given(reply(Reasoning("hm", "{}"), Text(f"Here it is.\n\n{GOOD}")))),
    (None, given(reply(Text(GOOD.replace("## ", "**").replace("\n- ", ":**\n- "))))),
    (None, given(reply(Text(GOOD + "\n- the log said: " + LONG[:200])))),
    ("summary_empty", given(reply())),
    ("summary_empty", given(reply(Text(" \n ")))),
    ("summary_empty", given(reply(Reasoning("hm", "{}")))),
    ("summary_tool_call", given(reply(ToolCall("c", "todo", "{}")))),
    ("summary_tool_call", given(reply(Text(GOOD), ToolCall("c", "todo", "{}")))),
    ("summary_declined", given(reply(Text(GOOD), stop="refusal"))),
    ("summary_declined", given(reply(Text("I cannot."), refusal="policy"))),
    ("summary_cut_off", given(reply(Text(GOOD), stop="max_tokens"))),
    ("summary_too_long", given(reply(Text(GOOD + "\nand so on" * 20_000)))),
    ("summary_too_long", given(reply(Text(GOOD + "\nand so on" * 20_000), stop="max_tokens"))),
    ("summary_echo", given(reply(Text(LONG[:5_000])))),
    ("summary_echo", given(reply(Text(f"{GOOD[:100]}\n{LONG[:5_000]}")))),
    ("summary_echo", given(reply(Text(instruction.text(2_000, ()))))),
    ("summary_unsectioned", given(reply(Text("It went well, thank you. What else?")))),
    ("summary_no_smaller", given(reply(Text(GOOD)), middle=50)),
]


@pytest.mark.parametrize(("code", "case"), CASES, ids=[f"{at}-{code}" for at, (code, _) in enumerate(CASES)])
def test_what_may_stand_for_a_conversation(code: str | None, case: Given) -> None:
    assert checks.refuse(case) == code


def test_every_section_is_asked_for_by_name_and_the_size_is_told() -> None:
    told = instruction.text(3_000, ())
    assert all(f"## {heading}" in told for heading, _ in instruction.SECTIONS)
    assert "3000 tokens" in told
    assert "memory tool" not in told
    assert "Remember:" in instruction.text(3_000, ("memory",))


@pytest.mark.parametrize(
    ("middle", "window", "answer", "tokens"),
    [
        (500, 200_000, 64_000, 1_500),
        (30_000, 200_000, 64_000, 6_000),
        (120_000, 200_000, 64_000, 10_000),
        (600_000, 1_000_000, 64_000, 12_000),
        (600_000, 1_000_000, 8_192, 6_144),  # more than one answer holds would be cut off, and so not used
    ],
)
def test_a_summary_has_a_fifth_of_what_it_stands_for_within_bounds(
    middle: int, window: int, answer: int, tokens: int
) -> None:
    assert instruction.budget(middle, window, answer) == tokens


@pytest.mark.parametrize("by_model", [True, False])
def test_a_frame_comes_off_again(by_model: bool) -> None:
    for tools in ((), ("session_search", "memory")):
        assert framed.body_of(framed.frame(f"{GOOD}\nRemember: x", tools, by_model=by_model)) == f"{GOOD}\nRemember: x"
    assert framed.body_of("of somebody else") == "of somebody else"


def test_what_was_flagged_for_memory_is_asked_for_again_once_the_tool_can_be_used() -> None:
    assert "save them with the memory tool" in framed.frame("Remember: x", ("memory",), by_model=True)
    assert "memory tool" not in framed.frame("Remember: x", (), by_model=True)
    assert "memory tool" not in framed.frame("nothing", ("memory",), by_model=True)


@pytest.mark.parametrize(
    ("recovery", "seconds"),
    [
        (Recovery("provider_cut", "", retry=True), [30, 60, 120, 240, 480, 900, 900]),
        (Recovery("rate_limit_error", "", retry=True, cools=True), [60, 120, 240, 480, 900]),
        (Recovery("rate_limit_error", "", retry=True, cools=True, wait_s=200), [200, 200, 240]),
        (Recovery("rate_limit_error", "", retry=True, cools=True, wait_s=3600), [900]),
        (Recovery("context_overflow", "", compress=True), [120]),
        (Recovery("authentication_error", "", fatal=True), [900]),
    ],
)
def test_the_summariser_rests_by_the_kind_of_its_failure(recovery: Recovery, seconds: list[int]) -> None:
    assert [rest.after_error(recovery, n) for n in range(len(seconds))] == seconds

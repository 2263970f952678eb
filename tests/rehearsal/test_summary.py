"""Proves the summary policy: what it writes was in the request, under the headings and within the words it was told."""

from typing import Any

from tests.rehearsal.served import Json, Served

TOOL: Json = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object"}}
NOISE = "The committee met again and talked about the weather for a long while. "
HEADINGS = (
    "Task as asked",
    "Constraints",
    "Decisions",
    "State",
    "Files",
    "Done",
    "Open",
    "Facts that must not be lost",
)


def instruction(words: int = 400) -> str:
    shown = "\n".join(f"## {heading}\n(what belongs here)" for heading in HEADINGS)
    return f"[Somebody: summary of the conversation] Write it.\n{shown}\nAt most {words} words in all."


def talk(*results: str, words: int = 400, first: str = "Clean the gateway. It must not restart.") -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": first}]}]
    for at, result in enumerate(results):
        call = {"type": "tool_use", "id": f"c{at}", "name": "read_file", "input": {"path": f"notes/{at}.md"}}
        answer = {"type": "tool_result", "tool_use_id": f"c{at}", "content": [{"type": "text", "text": result}]}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    messages[-1]["content"] = [*messages[-1]["content"], {"type": "text", "text": instruction(words)}]
    return messages


def summary(provider: Served, messages: list[Json]) -> str:
    body: Json = {"model": "claude-sonnet-5-5", "max_tokens": 20_000, "messages": messages, "tools": [TOOL]}
    found: Any = provider.raw(body).json()
    assert [block["type"] for block in found["content"]] == ["text"], "a summary is asked for, not work"
    return found["content"][0]["text"]


def test_each_heading_is_filled_from_the_request(provider: Served) -> None:
    note = f"{NOISE * 30}\nFor the record, the lease of unit four is QX4471-ALPHA.\n{NOISE * 30}"
    text = summary(provider, talk(note))
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(HEADINGS)
    assert "Clean the gateway. It must not restart." in text
    assert "It must not restart." in text.split("## Constraints")[1].split("## ")[0]
    assert "notes/0.md" in text.split("## Files")[1].split("## ")[0]
    assert "QX4471-ALPHA" in text.split("## Facts that must not be lost")[1]
    assert "Rehearsal" in text
    assert "Rehearsal" not in text.split(f"## {HEADINGS[-1]}")[1], "it would be one of the things to remember"


def test_what_the_request_does_not_show_is_not_in_the_summary(provider: Served) -> None:
    assert "QX4471-ALPHA" in summary(provider, talk("the code is QX4471-ALPHA."))
    assert "QX4471-ALPHA" not in summary(provider, talk("the code is not here."))


def test_a_summary_keeps_to_the_words_that_it_was_told(provider: Served) -> None:
    notes = [f"item {n} is AB{n:04}-CODE and costs $ {n}." for n in range(900)]
    for words in (200, 800):
        assert len(summary(provider, talk("\n".join(notes), words=words)).split()) <= words * 1.2


def test_an_earlier_summary_is_taken_over_heading_by_heading(provider: Served) -> None:
    first = summary(provider, talk("the code is QX4471-ALPHA."))
    again = summary(provider, talk(NOISE * 50, first=f"[a frame]\n\n{first}\n\n[its end]"))
    assert "QX4471-ALPHA" in again
    assert "It must not restart." in again


def test_a_summary_uses_up_no_reply_of_the_conversation(provider: Served) -> None:
    provider.script(match={"contains": "committee"}, replies=[{"text": "of the conversation"}])
    provider.script(match={"contains": "summary of the"}, summaries=True, replies=[{"text": "of the summariser"}])
    assert summary(provider, talk(NOISE)) == "of the summariser"
    assert summary(provider, [{"role": "user", "content": [{"type": "text", "text": NOISE}]}]) == "of the conversation"

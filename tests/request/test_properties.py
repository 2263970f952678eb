"""Whatever the transcript holds: requests only grow, marks only add themselves, and warm equals cold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.request import blocks, cache_plan, canonical, digest
from shared.request.cache_plan import PlanState
from shared.request.marked import Ttl, marked_from
from shared.request.projection import EditRow, MessageRow, Request, extend, project
from tests.request.made import PREFIX, STEADY, row, thinking
from tests.request.test_canonical import anything, with_surrogates

_MARK = re.compile(rb',"cache_control":\{"type":"ephemeral"(,"ttl":"1h")?\}')
PARAMS = '"model":"m","max_tokens":10,"metadata":{"user_id":"s1"}'

texts = with_surrogates.filter(lambda text: bool(text.strip()))
arguments = st.dictionaries(st.text(), anything, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=len(value) == 1, indent=1 if len(value) == 2 else None)
)
assistant_blocks = st.lists(
    texts.map(blocks.text) | arguments.map(lambda text: blocks.tool_use("c1", "read_file", text)), max_size=3
)
user_blocks = st.lists(texts.map(blocks.text) | texts.map(lambda text: blocks.tool_result("c1", text)), max_size=3)
signed = st.none() | st.integers(0, 3).map(lambda at: blocks.reasoning([(at, thinking("c2ln"))]))


@st.composite
def transcripts(draw: st.DrawFn, least: int = 0) -> list[MessageRow]:
    """Rows in any order of roles, with gaps in their ids, some empty, some with a sidecar or a scaffold."""
    rows: list[MessageRow] = []
    number = 0
    for _ in range(draw(st.integers(least, 8))):
        number += draw(st.integers(1, 3))
        if draw(st.booleans()):
            rows.append(row(number, "assistant", *draw(assistant_blocks), reasoning=draw(signed)))
        else:
            sent = draw(st.none() | user_blocks.map(blocks.join))
            rows.append(
                row(number, "user", *draw(user_blocks), sent=sent, scaffold=draw(st.none() | st.integers(0, 5)))
            )
    return rows


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[MessageRow], list[EditRow], list[MessageRow]]:
    """A transcript, edits that came after it, and rows that came after those."""
    old = draw(transcripts())
    newest = old[-1].id if old else 0
    kinds = st.sampled_from(["summary", "rewind", "restore", "stub"])
    edits: list[EditRow] = []
    for number in range(draw(st.integers(0, 4))):
        first = draw(st.integers(1, max(1, newest)))
        last = draw(st.integers(first, max(first, newest)))
        kind, id_ = draw(kinds), newest + 1 + number
        if kind == "restore":
            edits.append(EditRow(id_, kind, draw(st.sampled_from([edit.id for edit in edits] or [1]))))
        else:
            edits.append(EditRow(id_, kind, first, last, block=draw(st.integers(0, 2)), text="short"))
    after = [replace(one, id=one.id + newest + len(edits)) for one in draw(transcripts(least=1))]
    return old, edits, after


def block_list(request: Request) -> list[tuple[str, bytes]]:
    return list(digest.units(request))


@STEADY
@given(edited(), st.data())
def test_inside_an_epoch_each_request_extends_the_last_byte_for_byte(
    history: tuple[list[MessageRow], list[EditRow], list[MessageRow]], data: st.DataObject
) -> None:
    old, edits, after = history
    cut = data.draw(st.integers(0, len(after)))
    before, now = project(PREFIX, [*old, *after[:cut]], edits), project(PREFIX, [*old, *after], edits)
    assert block_list(now)[: before.chain.count] == block_list(before)
    assert digest.at(now, before.chain.count) == before.chain.digest
    assert b"".join(now.fragments).startswith(b"".join(before.fragments))


@STEADY
@given(edited(), st.data())
def test_what_was_grown_row_by_row_equals_what_is_projected_at_once(
    history: tuple[list[MessageRow], list[EditRow], list[MessageRow]], data: st.DataObject
) -> None:
    old, edits, after = history
    reasoning = data.draw(st.booleans())
    grown = project(PREFIX, old, edits, without_reasoning=reasoning)
    for one in after:
        grown = extend(grown, [one])
    whole = project(PREFIX, [*old, *after], edits, without_reasoning=reasoning)
    assert replace(grown, base=None, weight=whole.weight) == whole
    assert abs(grown.weight - whole.weight) < 1e-6


@STEADY
@given(transcripts(), st.sampled_from(list(Ttl)), st.none() | st.integers(1, 20))
def test_marks_change_no_byte_other_than_their_own_and_come_back_from_their_text(
    rows: list[MessageRow], ttl: Ttl, pinned: int | None
) -> None:
    request = project(PREFIX, rows)
    marked = cache_plan.place(request, PlanState(ttl=ttl, last_breakpoint_message_id=pinned))
    body = marked.body(PARAMS)
    assert _MARK.sub(b"", body) == marked_from(request, "[]").body(PARAMS)
    assert len(_MARK.findall(body)) == len(marked.marks) <= cache_plan.MOST_MARKS
    assert marked_from(project(PREFIX, reversed(rows)), marked.marks_text).body(PARAMS) == body


@STEADY
@given(transcripts())
def test_the_body_is_the_json_that_the_rows_say(rows: list[MessageRow]) -> None:
    request = project(PREFIX, rows)
    body: dict[str, Any] = json.loads(marked_from(request, "[]").body(PARAMS))
    assert body == {
        "model": "m",
        "max_tokens": 10,
        "metadata": {"user_id": "s1"},
        "tools": json.loads(PREFIX.tools_text),
        "system": json.loads(PREFIX.system_text),
        "messages": [
            {"role": message.role, "content": [json.loads(block) for block in message.blocks]}
            for message in request.messages
        ],
    }


@STEADY
@given(edited())
def test_roles_alternate_and_no_message_is_empty(
    history: tuple[list[MessageRow], list[EditRow], list[MessageRow]],
) -> None:
    old, edits, after = history
    messages = project(PREFIX, [*old, *after], edits).messages
    assert all(message.blocks for message in messages)
    assert all(left.role != right.role for left, right in pairwise(messages))


@STEADY
@given(arguments, with_surrogates)
def test_floats_unicode_keys_surrogates_and_nul_survive_from_row_to_wire(argument_text: str, text: str) -> None:
    rows = [
        row(1, "user", blocks.text(text)),
        row(2, "assistant", blocks.tool_use("c1", "t", argument_text)),
        row(3, "user", blocks.tool_result("c1", text)),
    ]
    stored = [one.content.encode() for one in rows]
    assert all(b"\x00" not in content for content in stored)
    body = marked_from(project(PREFIX, rows), "[]").body(PARAMS)
    assert canonical.encodable(argument_text).encode() in body
    sent: Any = json.loads(body)["messages"]
    assert sent[1]["content"][0]["input"] == json.loads(argument_text)
    assert sent[0]["content"][0]["text"] == json.loads(json.dumps(text))

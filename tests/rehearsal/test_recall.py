"""The policy that answers a question about one fact from the request, or looks for it."""

from typing import Any

from deploy.rehearsal.policies import recall

Json = dict[str, Any]
SUBJECT = "the settling code of Kestrel-7"
HANDLE = "result:812.0"
OFFERED = ("read_artifact", "read_file", "session_search")


def _asks(*before: Json, tools: tuple[str, ...] = OFFERED, after: tuple[Json, ...] = ()) -> Json:
    question = {"role": "user", "content": [{"type": "text", "text": f"Question: what is {SUBJECT}?"}]}
    return {"tools": [{"name": name} for name in tools], "messages": [*before, question, *after]}


def _ran(tool: str, given: Json, result: str, number: int = 0) -> tuple[Json, Json]:
    call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
    return {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}


def _wish(request: Json) -> tuple[str, Json] | str:
    reply = recall.reply(request)
    return (reply.tools[0].name, reply.tools[0].input) if reply.tools else reply.text


def test_a_fact_is_read_wherever_it_stands_in_the_request() -> None:
    for text in (
        f"For the record, {SUBJECT} is QX4417-BLUE.", f"2026 INFO {SUBJECT} = QX4417-BLUE",
        f'{{"{SUBJECT}": "QX4417-BLUE"}}', f"{SUBJECT} 是 QX4417-BLUE。",
    ):  # fmt: skip
        for before in (
            [{"role": "user", "content": text}], [{"role": "assistant", "content": [{"type": "text", "text": text}]}],
            _ran("read_file", {"path": "a"}, text),
        ):  # fmt: skip
            assert _wish(_asks(*before)) == f"{SUBJECT} is QX4417-BLUE."


def test_what_was_cut_away_is_paged_back_by_the_handle_near_the_thing() -> None:
    other = _ran("read_file", {"path": "notes/osprey-3-001.md"}, "[4,000 characters: result:9.9]", 1)
    stub = _ran("read_file", {"path": "notes/kestrel-7-004.md"}, f"[9,000 characters: {HANDLE}]", 2)
    assert _wish(_asks(*other, *stub)) == ("read_artifact", {"handle": HANDLE})
    found = _ran("read_artifact", {"handle": HANDLE}, f"{SUBJECT} is QX4417-BLUE", 3)
    assert _wish(_asks(*other, *stub, after=found)) == f"{SUBJECT} is QX4417-BLUE."


def test_a_page_that_is_not_the_last_is_followed_by_the_next_and_then_by_a_search() -> None:
    stub = _ran("read_file", {"path": "notes/kestrel-7-004.md"}, f"[9,000 characters: {HANDLE}]")
    first = _ran("read_artifact", {"handle": HANDLE}, "half [read on with offset=4001]", 1)
    assert _wish(_asks(*stub, after=first)) == ("read_artifact", {"handle": HANDLE, "offset": 4001})
    last = _ran("read_artifact", {"handle": HANDLE, "offset": 4001}, "the rest", 2)
    assert _wish(_asks(*stub, after=(*first, *last))) == ("session_search", {"query": SUBJECT})


def test_without_a_trace_it_searches_twice_and_then_says_that_it_found_nothing() -> None:
    assert _wish(_asks()) == ("session_search", {"query": SUBJECT})
    nothing = _ran("session_search", {"query": SUBJECT}, "nothing found")
    assert _wish(_asks(after=nothing)) == ("session_search", {"query": "Kestrel-7"})
    again = _ran("session_search", {"query": "Kestrel-7"}, "nothing found", 1)
    assert _wish(_asks(after=(*nothing, *again))) == f"I cannot find what {SUBJECT} is."
    assert _wish(_asks(tools=())) == f"I cannot find what {SUBJECT} is."


def _hit(session: str, found: str, handle: str) -> str:
    said = f"    found   tool: {found}"
    return f"session {session} (untitled), 2026-11-30 02:00 UTC, now summarised:\n{said}\n    whole   {handle}"


def test_what_a_hit_names_is_read_and_then_its_conversation_is_searched_however_long_the_list_is() -> None:
    ours, theirs = "6b1f0a52-3c1e-4d43-9d55-0f6d8f3a9a11", "0d9c4b1e-7a44-4c3b-8a0e-2f1b7c5d6e22"
    listed = (
        f"{_hit(theirs, 'osprey-3 ' * 300, 'result:9.9')}\n{_hit(ours, 'data/kestrel-7-004.json', HANDLE)}\n[2 shown]"
    )
    first = _ran("session_search", {"query": SUBJECT}, listed)
    assert _wish(_asks(after=first)) == ("read_artifact", {"handle": HANDLE})
    page = _ran("read_artifact", {"handle": HANDLE}, "a call and no more", 1)
    assert _wish(_asks(after=(*first, *page))) == ("session_search", {"query": "Kestrel-7"})
    again = _ran("session_search", {"query": "Kestrel-7"}, listed, 2)
    within = {"query": "Kestrel-7", "session": ours}
    assert _wish(_asks(after=(*first, *page, *again))) == ("session_search", within)
    nothing = _ran("session_search", within, "[nothing found]", 3)
    assert _wish(_asks(after=(*first, *page, *again, *nothing))) == f"I cannot find what {SUBJECT} is."


def test_a_question_of_an_earlier_turn_is_no_answer() -> None:
    earlier = {"role": "user", "content": f"Question: what is {SUBJECT}?"}
    told = {"role": "assistant", "content": f"I cannot find what {SUBJECT} is."}
    assert _wish(_asks(earlier, told, tools=())) == f"I cannot find what {SUBJECT} is."

"""One long session with everything that could move a byte: floats, odd keys, signed reasoning, twelve calls at once, a
steer, a cancelled call, failed calls, a park, calls without tools at a turn's end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.house import Rig, Row

# Exact texts: a dump of the parsed value would give other bytes for each of them.
ODD_ARGUMENTS = (
    '{"path": ".", "größe": 1e2}',
    '{"path":"." , "π":-0.0, "big": 12345678901234567890, "tiny": 1E-7}',
    '{"depth":1,"path":"."}',
    '{"path":".","depth":1}',
    '{"path": "\\u002e", "名前": 1.50}',
    '{"path":".","nested":{"z":1,"a":[1.0,2e0,3],"cache_control":{"type":"ephemeral"}}}',
    '{"path":"\\ud83d\\ude00 \\u202e\\u200f.md"}',
    '{"path":"😀","":null}',
    "{}",
    '{"path":"a\\/b"}',
    '{"path":".","depth":1.0}',
    '{"path":"\\t\\"\\\\\\u0001"}',
)
ODD_TEXT = 'Ende: “ß” \u202eabc\u202c \u200f 😀 \u2028 \x00 \x7f </script> \\u0041 \\ " {{x}} 1e2 e\u0301'
FINDS = {"name": "search_files", "input": {"pattern": "größe|π", "path": "."}}


def calls(*arguments: str, tool: str = "list_files") -> list[Row]:
    return [{"name": tool, "input": {}, "input_text": text} for text in arguments]


@dataclass(slots=True)
class Played:
    """A session and its turns, in order, with how each ended."""

    session: str
    turns: list[str] = field(default_factory=list[str])
    status: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, view: Row) -> None:
        self.turns.append(view["id"])
        self.status[view["id"]] = view["status"]


def play(stack: Rig) -> Played:
    """The whole story, one turn after another. The last call is a main one."""
    played = Played(stack.session(title="a long one"))
    for part in (_odd, _steered, _cancelled, _failed, _parked, _out_of_steps, _silent, _plain):
        part(stack, played)
    return played


def _script(stack: Rig, played: Played, *replies: dict[str, Any]) -> None:
    stack.provider.post("script", {"session": played.session, "replies": list(replies)})


def _turn(stack: Rig, played: Played, text: str, **more: Any) -> str:
    turn = stack.send(played.session, text, **more)
    played.add(stack.ended(turn))
    return turn


def _odd(stack: Rig, played: Played) -> None:
    note = '{"path":"größe.md","content":"π = 3.14\\r\\n\\u202edone"}'
    _script(
        stack, played,
        {"thinking": "Where to begin?", "text": "Twelve at once.", "tools": calls(*ODD_ARGUMENTS)},
        {"thinking": "π", "tools": [*calls(note, tool="write_file"), FINDS], "redacted": True},
        {"text": "both", "tools": [*calls('{"path":"größe.md"}', tool="read_file"), FINDS], "tools_first": True},
        {"text": "\n", "tools": calls('{"items":[{"text":"größe","done":false}]}', tool="todo")},
        {"text": ODD_TEXT, "chunks": 7},
    )  # fmt: skip
    _turn(stack, played, f"begin {ODD_TEXT}")


def _steered(stack: Rig, played: Played) -> None:
    _script(
        stack, played, {"text": "on it", "tools": calls("{}", "{}")}, {"tools": calls("{}")}, {"text": "as you wish"}
    )
    stack.provider.post("hold", {"hold": True})
    turn = stack.send(played.session, "go")
    stack.wait(inflight=1, session=played.session)
    for words in ("not that way \u202e", "rather this: größe 1e2"):
        stack.http.post(f"/v1/turns/{turn}/steer", json={"input": words}).raise_for_status()
    stack.provider.post("hold", {"hold": False})
    played.add(stack.ended(turn))


def _cancelled(stack: Rig, played: Played) -> None:
    before = sum(1 for call in stack.provider.ledger(played.session) if call["first_byte"] is not None)
    _script(stack, played, {"text": "this will never come to its end " * 40, "chunks": 60, "gap_s": 0.3})
    turn = stack.send(played.session, "talk long")
    stack.wait(begun=before + 1, session=played.session)
    stack.cancel(turn)
    played.add(stack.ended(turn))


def _failed(stack: Rig, played: Played) -> None:
    _script(
        stack, played,
        {"fault": {"kind": "status", "status": 529}},
        {"tools": calls('{"depth": 1}')},
        {"text": "cut off in the middle", "chunks": 6, "fault": {"kind": "cut", "after_chunks": 3}},
        {"text": "half", "fault": {"kind": "error_event", "after_chunks": 1, "error_type": "overloaded_error"}},
        {"text": "in the end"},
    )  # fmt: skip
    _turn(stack, played, "fail first")


def _parked(stack: Rig, played: Played) -> None:
    _script(
        stack, played, {"tools": calls("{}")}, {"fault": {"kind": "status", "status": 429, "retry_after": 2}},
        {"text": "back again"},
    )  # fmt: skip
    _turn(stack, played, "come back")


def _out_of_steps(stack: Rig, played: Played) -> None:
    _script(
        stack, played, {"thinking": "two steps only", "tools": calls("{}")}, {"tools": calls("{}", "{}")},
        {"text": "what there is"},
    )  # fmt: skip
    _turn(stack, played, "with two steps", max_steps=2)


def _silent(stack: Rig, played: Played) -> None:
    _script(stack, played, {"tools": calls("{}")}, {"text": ""}, {"text": "asked for words"})
    _turn(stack, played, "say nothing")


def _plain(stack: Rig, played: Played) -> None:
    _script(stack, played, {"tools": calls('{"path":".","x":1e2}')}, {"tools": calls("{}")}, {"text": "good night"})
    _turn(stack, played, "and now?")

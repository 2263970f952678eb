"""The ten turns: what each asks of the model, and in which of the sessions. Chosen for what a weak model breaks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    session: str
    aim: str
    text: str


def _say(call: str) -> str:
    return f"Write exactly this and nothing else:\n<tool_call>\n{call}\n</tool_call>"


TURNS = (
    Asked("talk", "words", "Say hello in one sentence."),
    Asked("talk", "words", "What is the capital of France?"),
    Asked("tools", "a tool, in its own words", "List the files of the workspace with the tool list_files."),
    Asked("tools", "a call", _say('{"name": "list_files", "arguments": {"path": "."}}')),
    Asked("tools", "a call that fails", _say('{"name": "read_file", "arguments": {"path": "no-such-file.txt"}}')),
    Asked("broken", "no name", _say('{"name": "", "arguments": {"path": "."}}')),
    Asked("broken", "no such tool", _say('{"name": "open_door", "arguments": {"door": 1}}')),
    Asked("broken", "bad JSON", _say('{"name": "read_file", "arguments": {"path": "a.txt"')),
    Asked("endless", "endless text", "Count from 1 to 100000, one number a line, and never stop."),
    Asked("endless", "after the endless text", "Say goodbye in one sentence."),
)

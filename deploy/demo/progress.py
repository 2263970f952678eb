"""Owns what a person sees while the brief is made: each step, the tools it calls, its tokens and its price."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any, cast

from api.cli import live, safe, screen
from api.cli.events import Seen
from api.cli.fold import Dropped
from deploy.demo.family import Child


def say(text: str = "") -> None:
    """To stderr: stdout is the brief's, or the JSON's."""
    sys.stderr.write(safe.text(text) + "\n")
    sys.stderr.flush()


@dataclass(slots=True)
class Progress:
    """`tools` counts calls by tool; `read` lists what was looked at, in order, each once."""

    tools: dict[str, int] = field(default_factory=dict[str, int])
    read: dict[str, None] = field(default_factory=dict[str, None])

    def show(self, seen: Seen) -> None:
        if isinstance(seen.change, Dropped):
            return
        data = seen.event.data
        match seen.event.kind:
            case "turn.started":
                say("  a worker has claimed the turn")
            case "tool.called":
                self._called(data)
                say(f"    → {live.call(data, 90)}")
            case "step.finished":
                say(f"  step {data.get('step')} · {bill(data)}")
            case "turn.finished":
                say(f"  turn {data.get('status')}")
            case kind:
                sentence = live.describe(kind, data)
                if sentence:
                    say(f"    {sentence}")

    def show_child(self, child: Child, seen: Seen) -> None:
        """The same of an agent that works for the turn, with its number in front. From a thread of its own."""
        if isinstance(seen.change, Dropped):
            return
        data = seen.event.data
        match seen.event.kind:
            case "tool.called":
                self._called(data)
                say(f"      [{child.number}] → {live.call(data, 84)}")
            case "step.finished":
                say(f"      [{child.number}] step {data.get('step')} · {bill(data)}")
            case "turn.finished":
                say(f"      [{child.number}] {data.get('status')}")
            case kind:
                sentence = live.describe(kind, data)
                if sentence:
                    say(f"      [{child.number}] {sentence}")

    def _called(self, data: Any) -> None:
        name = str(data.get("tool"))
        self.tools[name] = self.tools.get(name, 0) + 1
        path = _path(data.get("arguments"))
        if path:
            self.read[f"{path} ({name})"] = None


def bill(data: Any) -> str:
    tokens: Any = data.get("tokens")
    return f"{screen.money(data.get('cost_usd'))} · {screen.tokens(tokens)}"


def _path(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return ""
    if not isinstance(arguments, dict):
        return ""
    found = cast("dict[str, object]", arguments).get("path")
    return found if isinstance(found, str) else ""

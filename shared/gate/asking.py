"""What the gate is asked about a tool call, and its answer: a command, code, files that would be written, a call of a
tool server's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from shared.gate import decide, served
from shared.gate.policy import Identity, Policy
from shared.gate.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Command:
    """For a shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A program in a language that an interpreter runs as it stands."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Writes:
    """Files of the workspace, as the model names them."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Served:
    """A call of a tool server's tool, as the model names it; `allowed` by the operator's own word on that server."""

    tool: str
    arguments: Mapping[str, object]
    allowed: bool = False


Question = Command | Code | Writes | Served


def judge(question: Question, who: Identity | None, policy: Policy | None) -> Verdict:
    """Never raises; without identity or policy it is refused."""
    match question:
        case Command(text):
            return decide.command(text, who, policy)
        case Code(language, text):
            return decide.code_of(language, text, who, policy)
        case Writes(paths):
            return decide.paths(paths, who, policy)
        case Served(tool, arguments, allowed):
            return served.served(tool, arguments, who, policy, allowed=allowed)
        case _:
            assert_never(question)

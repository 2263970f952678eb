"""What a summariser wants remembered beyond its session: whether it is asked, and how its answer is cut. The facts are
written with the edit, in one transaction (decision 19)."""

from __future__ import annotations

from shared import demands
from shared.store import memories
from shared.values import SessionKind
from workers.compaction import instruction
from workers.held import Held
from workers.ports import Ports

MEMORY = "memory"
_BULLETS = "-*• \t"


def called(ports: Ports, held: Held) -> str | None:
    """Whose memory this conversation may write without asking anybody (`team`, `me`). None where it may not, or where
    the tool that does so is not there, is stopped, or waits for a person. Raises LeaseLost."""
    tools = held.claim.tools
    if MEMORY not in tools or MEMORY in held.stopped_tools or MEMORY in demands.parse(ports.settings.approve_tools):
        return None
    if held.claim.kind is SessionKind.JOB and not ports.settings.memory_from_jobs:
        return None
    return ports.database.read(lambda c: memories.written_from(c, held.claim.session))


def split(text: str) -> tuple[str, tuple[str, ...]]:
    """The summary without the section of what is to be remembered, and its facts, each once. Pure."""
    body: list[str] = []
    facts: list[str] = []
    inside = False
    for line in text.splitlines():
        heading = instruction.heading_of(line)
        if heading is not None:
            inside = heading == instruction.REMEMBER
        if not inside:
            body.append(line)
        elif heading is None:
            _take(facts, line)
    return "\n".join(body).strip(), tuple(dict.fromkeys(facts))


def _take(facts: list[str], line: str) -> None:
    """A line of its own is a fact; one that is set in goes on with the one before."""
    words = line.strip(_BULLETS).strip()
    if not words or words.casefold().rstrip(".") == "none":
        return
    if facts and line[:1].isspace() and line.lstrip()[:1] not in _BULLETS:
        facts[-1] = f"{facts[-1]} {words}"
    else:
        facts.append(words)

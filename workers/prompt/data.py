"""Material that enters a prompt, without what reads like an instruction. What is left out is named where it stood, so
that neither the model nor a person takes the rest for all."""

from __future__ import annotations

from dataclasses import dataclass

from shared import suspicion


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a prompt was made without: of which source, which entry of it (from 1), and what it reads like."""

    source: str
    entry: int
    why: str

    @property
    def note(self) -> str:
        return f"[entry {self.entry} left out: it reads like an instruction {self.why}]"


def without_suspects(source: str, parts: list[str]) -> tuple[list[str], tuple[LeftOut, ...]]:
    """The parts, each that reads like an instruction replaced by a note of it."""
    kept: list[str] = []
    left_out: list[LeftOut] = []
    for number, part in enumerate(parts, 1):
        why = suspicion.why(part)
        if why is not None:
            left_out.append(LeftOut(source, number, why))
        kept.append(part if why is None else left_out[-1].note)
    return kept, tuple(left_out)

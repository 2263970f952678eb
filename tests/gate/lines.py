"""The command lines of the corpus, as they would be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from shared.gate.policy import Identity, Policy
from shared.gate.verdict import Decision

_HERE = Path(__file__).parent / "corpus"
WHO = Identity(principal="ann", session="s")
PLAIN = Policy()


@dataclass(frozen=True, slots=True)
class Evasion:
    kind: str
    expected: Decision
    command: str


def _meant(text: str) -> str:
    plain = {"\\": "\\", "n": "\n", "t": "\t"}
    return re.sub(
        r"\\(\\|n|t|u([0-9a-f]{4}))", lambda met: plain[met[1]] if met[2] is None else chr(int(met[2], 16)), text
    )


def evasions() -> list[Evasion]:
    found: list[Evasion] = []
    kind = ""
    for line in (_HERE / "evasions.txt").read_text("ascii").splitlines():
        if line.startswith("## "):
            kind = line[3:]
        else:
            expected, _, command = line.partition("\t")
            found.append(Evasion(kind, Decision(expected), _meant(command)))
    return found


def ordinary() -> list[str]:
    return [_meant(line) for line in (_HERE / "ordinary.txt").read_text("utf-8").splitlines()]

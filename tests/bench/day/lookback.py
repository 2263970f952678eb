"""Fifty steps of twelve calls at once: what the pinned marks cost beside marks on the last two messages (Show it 2)."""

from __future__ import annotations

import random

from tests.bench.day import counterfactual, texts
from tests.bench.day.drive import Run, staged
from tests.bench.day.plan import Plan, Step, Turn, Wish
from tests.bench.figures import Figure
from tests.bench.house import House

MODEL = "claude-opus-5-5"
STEPS, WIDE = 50, 12


def measure(house: House) -> list[Figure]:
    run = Run(_plan(), MODEL)
    with staged(house, {}) as stage:
        stage.play([run])
        assert not run.failed, run.failed
        pinned = counterfactual.alone(stage.book, run.calls)
        two = counterfactual.last_two_messages(stage.book, run.calls)
    lost = lost_two = 0
    epochs = [call.facts["last_edit"] for call in run.calls]
    for at in range(1, len(run.calls)):
        if epochs[at] == epochs[at - 1]:
            owed = pinned[at - 1].prompt - pinned[at - 1].input
            lost += pinned[at].read < owed
            lost_two += two[at].read < two[at - 1].prompt - two[at - 1].input
    paid, naive = counterfactual.dollars(pinned, MODEL), counterfactual.dollars(two, MODEL)
    name = f"{STEPS} steps of {WIDE} calls at once"
    return [
        Figure(
            f"{name}: calls that did not read all that the one before wrote", lost, f"of {len(run.calls)}", lost_two,
            "with marks on the last two messages, simulated", mark=0, note=f"{len(set(epochs)) - 1} edits",
        ),
        Figure(f"{name}: the bill", paid, "$", naive, "with marks on the last two messages, simulated"),
    ]  # fmt: skip


def _plan() -> Plan:
    rng = random.Random("wide")
    made = Plan("wide", 0)
    steps: list[Step] = []
    for number in range(STEPS):
        wishes: list[Wish] = []
        for at in range(WIDE):
            path = f"wide/{number:02}-{at:02}.md"
            made.files[path] = texts.note(rng, rng.randint(300, 3_000), None)
            wishes.append(Wish("read_file", {"path": path}))
        steps.append(Step(tuple(wishes), texts.sentence(rng), texts.prose(rng, 100)))
    made.turns.append(Turn(0, "Read everything, a dozen at a time.", tuple(steps), "Everything was read."))
    return made

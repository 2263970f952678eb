"""A session in Chinese and one in JSON: where the first compaction fires, beside the true threshold (Show it 4).

What is said is pasted by the person, so that no stub can make room; the window is 200,000, so that it is reached
before a summary has paid for itself.
"""

from __future__ import annotations

import random

from tests.bench.day import counterfactual, texts
from tests.bench.day.drive import Run, Stage, staged
from tests.bench.day.plan import Plan, Turn
from tests.bench.figures import Figure
from tests.bench.house import House

MODEL = "claude-opus-5-5"
WINDOW, ANSWER = 200_000, 8_192
SHARE = 0.9
"""Of the window without the answer, once a bill was seen (economics.md, "The trigger")."""
WITHIN = 0.10
KINDS: dict[str, tuple[texts.Writer, int]] = {"Chinese": (texts.chinese, 7_000), "JSON": (texts.records, 14_000)}


def measure(house: House) -> list[Figure]:
    runs = {kind: Run(_plan(kind), MODEL) for kind in KINDS}
    with staged(house, {MODEL: WINDOW}) as stage:
        stage.play(list(runs.values()))
        return [_figure(stage, kind, run) for kind, run in runs.items()]


def _plan(kind: str) -> Plan:
    rng = random.Random(kind)
    writer, size = KINDS[kind]
    made = Plan(kind, 0)
    for number in range(36):
        pasted = writer(rng, rng.randint(size // 2, size * 3 // 2), None)
        made.turns.append(Turn(number * 60.0, f"Keep this:\n{pasted}", answer="Kept."))
    return made


def _figure(stage: Stage, kind: str, run: Run) -> Figure:
    """The mark is held against the size that the prompt would have had, by the provider's count, at the call before
    which the conversation was compacted."""
    threshold = SHARE * (WINDOW - ANSWER)
    line = counterfactual.unedited(stage.book, run.main, run.results)
    true = counterfactual.prompts(stage.book, line)
    compacted = [one for one in run.reductions if one["decision"] == "compact"]
    name = f"first compaction of a session in {kind}: true size / true threshold"
    if not compacted:
        return Figure(name, 0.0, "", mark=WITHIN, judged=1.0, note="it never compacted")
    first = compacted[0]
    at = sum(call.facts["seq"] < first["id"] for call in run.main)
    found = true[min(at, len(true) - 1)] / threshold
    raw = next((size for size, call in zip(true, run.main, strict=True) if call.facts["estimate"] >= threshold), None)
    early = f"{raw:,} tokens, {raw / threshold:.2f} of it" if raw else "never"
    return Figure(
        name, found, "", mark=WITHIN, judged=abs(found - 1),
        note=f"cause {first['cause']}, at {true[min(at, len(true) - 1)]:,} of {threshold:,.0f} tokens, projected "
        f"{first['tokens_before'] or 0:,}; the raw estimate would have fired at {early}",
    )  # fmt: skip

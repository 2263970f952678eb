"""Which results of a step are kept whole in the store, with a preview in their place. Pure: sizes in, a decision out.

Issue "Tools", section 4: over the tool's own bound, then over 100,000 characters, then the largest of a step until the
step fits. Budgets shrink with the window and never grow (reference/hermes-0.19.md 9: 15 % and 30 % of the window at
four characters a token). What pages a kept text is shortened by its own tool instead: it is no text of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID, uuid5

from shared.request import estimate, handles
from shared.values import RunStatus
from workers.outgoing import Finished, Kept
from workers.tools.context import run_key

MOST = 100_000
STEP = 200_000
"""Characters of one result, and of all results of a step, that stand in the transcript at most."""
LEAST_MOST, LEAST_STEP = 8_000, 16_000
"""Below that no window, however small, takes the budgets."""
PREVIEW, SHORTEST = 1_500, 200
"""Characters of a result's beginning: usually, and where not even all previews of a step would fit."""
RECALL = "read_artifact"
PAGES = frozenset({RECALL})
"""Tools whose results are parts of what is kept already: never kept again, but shortened."""
BOUNDED = PAGES | {"delegate_task"}
"""Those and what has a share of the window of its own, with the rest kept (waiting/summaries.py): only where nothing
else makes room."""
_NAMES = UUID("a4a8d2f0-98c7-5d5e-9a44-2b0f6c1c8f11")


@dataclass(frozen=True, slots=True)
class Budget:
    """Of one step: `tokens` as `model` counts them, of what its window has left; `chars` of all results, and `single`
    of one."""

    model: str
    tokens: float
    chars: int
    single: int


def budget(model: str, window: int, tokens: float) -> Budget:
    """What a step may put into a window of so many tokens, of which `tokens` are to spare for it."""
    single = min(MOST, max(LEAST_MOST, int(window * 0.15 * 4)))
    return Budget(model, tokens, min(STEP, max(LEAST_STEP, int(window * 0.30 * 4))), single)


def keep(turn: UUID, finished: Finished, *, recall: bool, preview: int = PREVIEW) -> Finished:
    """The same with a preview for its text, and the whole beside it, under a handle that is always this run's."""
    whole = finished.text if finished.kept is None else finished.kept.text
    id_ = uuid5(_NAMES, run_key(str(turn), finished.step, finished.ordinal))
    text = _preview(whole, handles.artifact(id_), preview, recall=recall)
    return replace(finished, text=text, kept=Kept(id_, whole))


def fitted(turn: UUID, results: Sequence[Finished], budget: Budget, *, recall: bool) -> tuple[Finished, ...]:
    """All results of a step, in their order: the largest of them kept until the rest fits. Where previews alone are
    too much, they are shortened, the largest first."""
    found = list(results)
    sizes = [estimate.estimate_text(one.text, budget.model) for one in found]
    for preview, spared in ((PREVIEW, BOUNDED), (SHORTEST, PAGES)):
        for at in sorted(range(len(found)), key=lambda at: -sizes[at]):
            if _fits(found, sizes, budget):
                return tuple(found)
            if found[at].tool in spared or not _is_long(found[at], preview):
                continue
            found[at] = keep(turn, found[at], recall=recall, preview=preview)
            sizes[at] = estimate.estimate_text(found[at].text, budget.model)
    return tuple(found)


def _fits(found: Sequence[Finished], sizes: Sequence[int], budget: Budget) -> bool:
    chars = sum(len(one.text) for one in found if one.tool not in BOUNDED)
    return sum(sizes) <= budget.tokens and chars <= budget.chars


def _is_long(finished: Finished, preview: int) -> bool:
    """Whether a preview of it would be shorter by as much again. What is not known to have ended says so in a sentence
    that must stand whole."""
    if finished.status == RunStatus.UNKNOWN:
        return False
    return finished.kept is not None or len(finished.text) > 2 * preview


def _preview(whole: str, handle: str, most: int, *, recall: bool) -> str:
    """Its beginning, up to the end of a line where one is near, and what the rest is and where."""
    shown = whole[:most]
    end = shown.rfind("\n", most // 2)
    shown = shown[: end + 1] if end > 0 else shown
    more = f"{RECALL} {handle} offset={len(shown)} reads on" if recall else "run the tool again for parts of it"
    told = f"[preview: the first {len(shown):,} of {len(whole):,} characters; kept whole as {handle}; {more}]"
    return f"{shown}{'' if shown.endswith(chr(10)) else chr(10)}{told}"

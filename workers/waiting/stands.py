"""How each run of a batch stands that needs somebody else. All of a batch is asked for before anything waits, so that
a person sees its requests together, in call order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shared.demands import Demand
from shared.values import RunStatus
from workers.held import Held
from workers.ports import Ports
from workers.providers.replies import ToolCall
from workers.recording import Run
from workers.tools import arguments, registry
from workers.tools.context import Arguments, ToolRefused
from workers.tools.tool import Waits
from workers.waiting import approvals, children, gating, questions, rules
from workers.waiting.gating import Asked, Refusal
from workers.waiting.state import Ready, Stand, answered


def held_back(ports: Ports, held: Held, call: ToolCall) -> bool:
    """Whether a call may not begin by itself: its tool waits, the settings demand a person, or the gate does."""
    if call.name in demanded(ports.settings.approve_tools) or rules.waits_of(call.name) is not None:
        return True
    given = _given(held, call)
    return given is not None and not gating.may_begin(ports, held, call.name, given)


@lru_cache(maxsize=4)
def demanded(setting: str) -> Mapping[str, Demand]:
    return rules.demands(setting)


def of_batch(ports: Ports, held: Held, runs: Sequence[Run], room_tokens: float) -> dict[int, Stand]:
    """By ordinal; a run that needs nobody is not in it. Costs no statement where no run does. Raises LeaseLost."""
    given = [(run, arguments) for run in runs if (arguments := _given(held, run.call)) is not None]
    found: dict[int, Stand] = {}
    asked: list[tuple[Run, Arguments, Asked]] = []
    gated = gating.of_runs(ports, held, given, demanded(ports.settings.approve_tools))
    for run, one in given:
        match gated.get(run.ordinal):
            case Refusal(words):
                found[run.ordinal] = answered(run, words, RunStatus.DENIED)
            case Asked() as why:
                asked.append((run, one, why))
            case None:
                pass
    found |= approvals.stands(ports, held, asked)
    waiting = [(run, one) for run, one in given if rules.waits_of(run.call.name) is not None]
    delegations = sum(rules.waits_of(run.call.name) is Waits.CHILDREN for run, _ in waiting)
    for run, one in waiting:
        if not isinstance(found.get(run.ordinal, Ready()), Ready):
            continue
        if rules.waits_of(run.call.name) is Waits.PERSON:
            found[run.ordinal] = questions.stand(ports, held, run, one)
        else:
            found[run.ordinal] = children.stand(ports, held, run, one, room_tokens / delegations)
    return found


def _given(held: Held, call: ToolCall) -> Arguments | None:
    """Its arguments; None of a call that is answered with an error where it would run."""
    if call.malformed is not None or call.name not in held.claim.tools or call.name not in registry.TOOLS:
        return None
    tool = registry.TOOLS[call.name]
    try:  # as where it runs (workers/tools/dispatch.py): what runs there unasked must not be left out here
        return arguments.parse(call.arguments_text, tool.schema) if tool.ours else arguments.read(call.arguments_text)
    except ToolRefused:
        return None

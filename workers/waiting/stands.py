"""How each run of a batch stands that needs somebody else. All of a batch is asked for before anything waits, so that
a person sees its requests together, in call order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from shared.demands import Demand
from workers.held import Held
from workers.ports import Ports
from workers.recording import Run
from workers.tools import arguments, registry
from workers.tools.context import ToolRefused
from workers.tools.tool import Waits
from workers.waiting import approvals, children, questions, rules
from workers.waiting.state import Ready, Stand


def names(setting: str) -> frozenset[str]:
    """Tools whose calls do not begin by themselves."""
    return frozenset(demanded(setting)) | {
        name for name, tool in list(registry.TOOLS.items()) if tool.waits is not None
    }


@lru_cache(maxsize=4)
def demanded(setting: str) -> Mapping[str, Demand]:
    return rules.demands(setting)


def of_batch(ports: Ports, held: Held, runs: Sequence[Run], room_tokens: float) -> dict[int, Stand]:
    """By ordinal; a run that needs nobody is not in it. Costs no statement where no run does. Raises LeaseLost."""
    demands = demanded(ports.settings.approve_tools)
    concerned: list[tuple[Run, Mapping[str, object]]] = []
    for run in runs:
        name = run.call.name
        if run.call.malformed is not None or name not in held.claim.tools:
            continue  # it is answered with an error where it would run
        if name not in demands and rules.waits_of(name) is None:
            continue
        try:
            concerned.append((run, arguments.parse(run.call.arguments_text, registry.TOOLS[name].schema)))
        except ToolRefused:
            continue
    asked = [run for run, _ in concerned if run.call.name in demands]
    found = approvals.stands(ports, held, asked, demands)
    delegations = sum(rules.waits_of(run.call.name) is Waits.CHILDREN for run, _ in concerned)
    for run, given in concerned:
        if not isinstance(found.get(run.ordinal, Ready()), Ready):
            continue
        match rules.waits_of(run.call.name):
            case Waits.PERSON:
                found[run.ordinal] = questions.stand(ports, held, run, given)
            case Waits.CHILDREN:
                found[run.ordinal] = children.stand(ports, held, run, given, room_tokens / delegations)
            case None:
                pass
    return found

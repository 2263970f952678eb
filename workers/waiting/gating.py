"""What the gate says of the runs of a batch, and what a person would be asked of each.

Whose call it is comes from the claim and nothing else; a run without one is refused. Nothing is remembered from one
batch to the next: what was granted is read where a call would be asked about, so that a revoked grant ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from shared import mcp
from shared.demands import Demand
from shared.gate import modes
from shared.gate.asking import Code, Command, Question, Served, Writes, judge
from shared.gate.bypass import LAUNCHED_WITH_BYPASS
from shared.gate.policy import Identity, Policy
from shared.gate.verdict import Decision, Verdict
from shared.sandbox import hosts
from shared.sandbox.tiers import Tier
from shared.store.statements import every, grants
from shared.values import Role, SessionKind
from workers.held import Held
from workers.ports import Ports
from workers.recording import Run
from workers.sandbox import wall
from workers.tools import registry
from workers.tools.context import Arguments
from workers.tools.tool import text

_BEHIND_THE_WALL = frozenset({"terminal", "run_code"})
_QUESTIONS: Mapping[str, Callable[[Arguments], Question]] = {
    "terminal": lambda given: Command(text(given, "command", "")),
    "run_code": lambda given: Code("python", text(given, "code", "")),
    "write_file": lambda given: Writes((text(given, "path", ""),)),
    "patch": lambda given: Writes((text(given, "path", ""),)),
}
"""What each tool that changes files, or runs what the model wrote, asks the gate. A test knows every tool."""
BY_HAND = "write_file or patch shows a person what would be written; a command's change of such a file does not stand"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person decides: who may, why it is asked, and what a yes may cover beyond this call; `patterns` empty
    where nothing may be covered."""

    demand: Demand
    rule: str = "settings"
    why: str | None = None
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """`words` are for the model."""

    words: str


@dataclass(frozen=True, slots=True)
class _Standing:
    """What was granted to this principal here."""

    patterns: frozenset[str]
    bypass: bool


_NONE = _Standing(frozenset(), bypass=False)


def may_begin(ports: Ports, held: Held, name: str, given: Arguments) -> bool:
    """Before anything is read of what was granted: whether the gate lets this call begin."""
    verdict = _verdict(ports, held, name, given, _NONE)
    return verdict is None or verdict.decision is Decision.ALLOW


def of_runs(
    ports: Ports, held: Held, runs: Sequence[tuple[Run, Arguments]], demands: Mapping[str, Demand]
) -> dict[int, Asked | Refusal]:
    """By ordinal, those that do not simply run. Reads what was granted only where somebody would be asked."""
    found: dict[int, Asked | Refusal] = {}
    standing: _Standing | None = None
    for run, given in runs:
        came = _of_run(ports, held, run.call.name, given, demands, _NONE)
        if isinstance(came, Asked) and (came.patterns or not came.demand.four_eyes):
            standing = standing or _standing(ports, held)
            came = _of_run(ports, held, run.call.name, given, demands, standing)
        if came is not None:
            found[run.ordinal] = came
    return found


def _of_run(
    ports: Ports, held: Held, name: str, given: Arguments, demands: Mapping[str, Demand], standing: _Standing
) -> Asked | Refusal | None:
    verdict = _verdict(ports, held, name, given, standing)
    if verdict is not None and verdict.decision is Decision.REFUSE:
        return Refusal(f"refused ({verdict.rule}): {verdict.why}. It did not run, and asking again changes nothing.")
    if verdict is not None and verdict.decision is Decision.ASK_PERSON and name in _BEHIND_THE_WALL:
        return Refusal(f"refused ({verdict.rule}): {verdict.why}. {BY_HAND}.")
    asks = verdict if verdict is not None and verdict.asks else None
    demand = demands.get(name)
    own = f"tool:{name}"
    if demand is not None and (demand.four_eyes or own not in standing.patterns):
        return _demanded(demand, own, asks)
    if asks is None:
        return None
    return Asked(Demand(Role.APPROVER, four_eyes=False), asks.rule, asks.why, asks.patterns)


def _demanded(demand: Demand, own: str, asks: Verdict | None) -> Asked:
    """The settings ask about this tool whatever is done with it; with what the gate asks on top."""
    if asks is None:
        return Asked(demand, why=None, patterns=() if demand.four_eyes else (own,))
    covered = () if demand.four_eyes or asks.decision is Decision.ASK_PERSON else (own, *asks.patterns)
    return Asked(demand, asks.rule, asks.why, covered)


def _verdict(ports: Ports, held: Held, name: str, given: Arguments, standing: _Standing) -> Verdict | None:
    tool = registry.TOOLS.get(name)
    if tool is not None and not tool.ours:
        question = Served(name, given, mcp.allows(ports.settings.mcp, name, held.claim.profile))
    else:
        question = _question(name, given)
    if question is None:
        return None
    policy = _policy(ports, held, name)
    off = policy.patterns_off or standing.bypass
    return judge(question, _who(held), replace(policy, granted=standing.patterns, patterns_off=off))


def _question(name: str, given: Arguments) -> Question | None:
    made = _QUESTIONS.get(name)
    question = None if made is None else made(given)
    if isinstance(question, Command) and not question.text.strip():
        return None  # it asks for a process that was begun before, or is no call at all
    return question


def _who(held: Held) -> Identity:
    return Identity(str(held.claim.requested_by or ""), str(held.claim.session))


def _policy(ports: Ports, held: Held, name: str) -> Policy:
    claim = held.claim
    policy = modes.policy(ports.settings, claim.profile, is_job=claim.kind is SessionKind.JOB)
    own = claim.workspace.is_relative_to(ports.settings.home.absolute()) and claim.folder is None
    # What could be sent away needs a person, wherever it runs.
    closed = not hosts.of_profile(ports.settings.sandbox_hosts, claim.profile)
    behind = closed and name in _BEHIND_THE_WALL and own and wall.way().tier is Tier.ISOLATED
    return replace(policy, isolated=behind, patterns_off=LAUNCHED_WITH_BYPASS)


def _standing(ports: Ports, held: Held) -> _Standing:
    values = {"principal": held.claim.requested_by, "session": held.claim.session}
    rows = ports.database.read(lambda c: every(c, grants.GRANTS_STANDING, values))
    patterns = frozenset(pattern for row in rows for pattern in row["patterns"])
    return _Standing(patterns, any(row["scope"] == "bypass" for row in rows))

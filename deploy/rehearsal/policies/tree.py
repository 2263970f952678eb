"""Owns the tree policy: whoever is offered to delegate does so once, with so many tasks; everybody else answers. How
deep that goes is decided by who offers it, not here."""

from dataclasses import dataclass, replace
from typing import Final

from deploy.rehearsal.loose import Json
from deploy.rehearsal.policies.steps import steps_done
from deploy.rehearsal.reply import Reply, ToolWish, WrongScript

TOOL: Final = "delegate_task"


@dataclass(frozen=True, slots=True)
class Tree:
    width: int
    goal: str
    text: str
    delay_s: float


def read(given: Json) -> Tree:
    if not isinstance(given.get("width"), int) or given["width"] < 1:
        raise WrongScript("script: the policy `tree` needs `width` (a number from 1 on)")
    text = str(given.get("text") or "Rehearsal: done.")
    return Tree(given["width"], str(given.get("goal") or "part"), text, float(given.get("delay_s", 0)))


def reply(policy: Tree, request: Json) -> Reply:
    """One delegation where the tool is offered and was not used in this turn, else the closing text."""
    wait = Reply(delay_s=policy.delay_s)
    tools: list[Json] = request.get("tools") or []
    offered = any(tool["name"] == TOOL for tool in tools)
    if offered and not steps_done(request["messages"]):
        tasks = [{"goal": f"{policy.goal} {number + 1}"} for number in range(policy.width)]
        return replace(wait, tools=(ToolWish(TOOL, {"tasks": tasks}),))
    return replace(wait, text=policy.text)

"""Owns the benchmark policy: so many tool calls a turn, then an answer, counted from the request itself."""

from dataclasses import dataclass, replace
from typing import Any

from deploy.rehearsal.loose import Json
from deploy.rehearsal.reply import Reply, ToolWish, WrongScript


@dataclass(frozen=True, slots=True)
class Steps:
    steps: int
    calls: int
    tool: str
    input: Json
    delay_s: float
    gap_s: float
    chunks: int | None
    text: str | None


def read(given: Json) -> Steps:
    if given["policy"] != "steps":
        raise WrongScript("script.policy: known are `steps`, `tree` and `recall`")
    if not isinstance(given.get("steps"), int) or not isinstance(given.get("tool"), str):
        raise WrongScript("script: the policy `steps` needs `steps` (a number) and `tool` (a name)")
    return Steps(
        steps=given["steps"],
        calls=int(given.get("calls", 1)),
        tool=given["tool"],
        input=given.get("input") or {},
        delay_s=float(given.get("delay_s", 0)),
        gap_s=float(given.get("gap_s", 0)),
        chunks=given.get("chunks"),
        text=given.get("text"),
    )


def reply(policy: Steps, request: Json) -> Reply:
    """A tool call while steps are left since the last message that carried no result, else the closing text."""
    done = steps_done(request["messages"])
    wait = Reply(delay_s=policy.delay_s, gap_s=policy.gap_s, chunks=policy.chunks)
    if done < policy.steps:
        return replace(wait, tools=(ToolWish(policy.tool, policy.input),) * policy.calls)
    return replace(wait, text=policy.text or f"Rehearsal: done after {done} steps.")


def steps_done(messages: list[Any]) -> int:
    """Steps of this turn: messages with results since the last message of the person."""
    done = 0
    for message in reversed(messages):
        if message["role"] != "user":
            continue
        content = message["content"]
        if isinstance(content, str) or not any(block["type"] == "tool_result" for block in content):
            return done
        done += 1
    return done

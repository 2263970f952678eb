"""The work that a drill hurts: turns whose tools have effects, turns that wait for a person, turns with children."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from deploy.drill import effect
from deploy.drill.rig import Rig, slack, until

T = TypeVar("T")
STEPS, CALLS = 2, 2
CHILDREN = 2


@dataclass(frozen=True, slots=True)
class Load:
    """Turns, and how many effects all of them ask for, those of their children too."""

    turns: tuple[str, ...]
    effects: int

    def __add__(self, other: Load) -> Load:
        return Load(self.turns + other.turns, self.effects + other.effects)


def effects(rig: Rig, count: int = 1, tool: str = effect.EFFECT) -> Load:
    """Turns of two steps with two effects each."""
    return Load(tuple(_send(rig, _steps(tool)) for _ in range(count)), count * STEPS * CALLS)


def asked(rig: Rig) -> Load:
    """A turn whose effects somebody has to allow first: it parks twice."""
    return Load((_send(rig, _steps(effect.ASKED)),), STEPS * CALLS)


def delegating(rig: Rig) -> Load:
    """A turn that parks on its children, which have the effects."""
    name = child_script(rig, _steps(effect.EFFECT))
    tasks = [{"goal": f"have your effects, script:{name}"}] * CHILDREN
    script = _steps("delegate_task", steps=1, calls=1, input={"tasks": tasks})
    return Load((_send(rig, script),), CHILDREN * STEPS * CALLS)


def child_script(rig: Rig, script: dict[str, Any]) -> str:
    """The name by which a goal or a job asks for this script."""
    name = f"drill-{secrets.token_hex(6)}"
    rig.provider.post("script", {"name": name, **script})
    return name


def job_script(rig: Rig) -> str:
    return child_script(rig, _steps(effect.EFFECT))


def _steps(tool: str, *, steps: int = STEPS, calls: int = CALLS, **more: Any) -> dict[str, Any]:
    # What the answers depend on stands in the request alone, so a call that is made again gets the same.
    return {
        "policy": "steps", "steps": steps, "calls": calls, "tool": tool, "chunks": 3, "gap_s": 0.02, "delay_s": 0.1,
        "text": "every effect was asked for", **more,
    }  # fmt: skip


def _send(rig: Rig, script: dict[str, Any]) -> str:
    session = rig.session()
    rig.script(session, **script)
    return rig.send(session, "have your effects")


def approve(rig: Rig) -> None:
    """Allow whatever waits for it. An API that is away is asked again later."""
    with contextlib.suppress(httpx.HTTPError):
        waiting = rig.http.get("/v1/approvals", params={"status": "pending"}).raise_for_status().json()["items"]
        for one in waiting:
            rig.http.post(f"/v1/approvals/{one['id']}", json={"decision": "approve"})


def tended(rig: Rig, true: Callable[[], T | None], seconds: float, what: str) -> T:
    """As `until`, while somebody sits there and allows what is asked."""
    looks = 0

    def look() -> T | None:
        nonlocal looks
        looks += 1
        if looks % 20 == 0:
            approve(rig)
        return true()

    return until(look, seconds * slack(), what)

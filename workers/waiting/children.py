"""Delegated work: children made once, waited for without a worker, each answered by one bounded summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import cast
from uuid import UUID, uuid5

from psycopg.rows import DictRow

from shared.request import blocks
from shared.store.arrays import array
from shared.store.statements import every, waiting
from shared.text import clean_text
from shared.values import AGING, TERMINAL, EventKind, ParkReason, RunStatus, TurnClass, TurnStatus
from workers import budget, caps, fence, prefixing
from workers.emit import emit
from workers.held import Held
from workers.ports import Ports
from workers.prompt import child
from workers.recording import Run
from workers.tools.context import ToolRefused
from workers.tools.places import CHILDREN
from workers.waiting import around, late, summaries, toolset
from workers.waiting.state import Stand, Wait, answered

_NAMES = UUID("6f1d1f0e-0c0b-5f0e-9a3e-3d2f6a0c7b11")


@dataclass(frozen=True, slots=True)
class Task:
    goal: str
    context: str
    tools: tuple[str, ...]


def stand(ports: Ports, held: Held, run: Run, arguments: Mapping[str, object], room_tokens: float) -> Stand:
    """How the delegation stands; its children are made now where there are none. Raises LeaseLost.

    `room_tokens` is what the summaries of this run may take of the parent's window together.
    """
    background = arguments.get("background") is True
    rows = _rows(ports, held, run)
    if not rows:
        try:
            tasks = _tasks(held, arguments)
            if background and held.claim.depth > 0:
                raise ToolRefused("only the conversation itself delegates in the background: leave background out")
            cap = _cap(ports, held, len(tasks))
        except ToolRefused as refused:
            return answered(run, refused.message, RunStatus.FAILED)
        no = around.denied(held, run, arguments)
        if no is not None:
            return no
        _spawn(ports, held, run, tasks, cap, background=background)
        rows = _rows(ports, held, run)
    if background:
        return around.seen(held, run, arguments, answered(run, _begun(rows), RunStatus.DONE))
    waited_for = [row for row in rows if TurnStatus(row["status"]) not in TERMINAL]
    if waited_for and not rows[0]["over"]:
        return Wait(ParkReason.CHILDREN, ports.settings.children_limit_s)
    if waited_for:
        stopped = late.stop(ports, [row["id"] for row in waited_for])
        now = _rows(ports, held, run)
        rows = [{**row, "error_text": late.TOO_LATE} if row["id"] in stopped else row for row in now]
    share = summaries.share(room_tokens, len(rows))
    text = "\n\n".join(summaries.told(ports, held, row, len(rows), share) for row in rows)
    failed = all(row["status"] != TurnStatus.DONE for row in rows)
    came = answered(run, text, RunStatus.FAILED if failed else RunStatus.DONE)
    return around.seen(held, run, arguments, came)


def _tasks(held: Held, arguments: Mapping[str, object]) -> list[Task]:
    found: list[Task] = []
    for at, item in enumerate(cast("Sequence[Mapping[str, object]]", arguments["tasks"])):
        goal = clean_text(str(item["goal"])).strip()
        if not goal:
            raise ToolRefused(f"tasks[{at}].goal is blank: say what is to be done")
        asked = tuple(str(name) for name in cast("Sequence[object]", item.get("tools", ())))
        lacking = [name for name in asked if name not in held.claim.tools]
        if lacking:
            raise ToolRefused(f"tasks[{at}].tools: you do not have {', '.join(lacking)} and cannot hand it on")
        found.append(Task(goal, clean_text(str(item.get("context", ""))).strip(), asked))
    return found


def _cap(ports: Ports, held: Held, children: int) -> Decimal | None:
    """What each child may spend: a part of what its parent has left, reserved there until the child is over."""
    cap = budget.for_each_child(caps.caps(ports, held), children)
    if cap is not None and not cap:
        raise ToolRefused("the money that is left is not enough to hand on: go on without children")
    return cap


def _spawn(ports: Ports, held: Held, run: Run, tasks: Sequence[Task], cap: Decimal | None, *, background: bool) -> None:
    claim, settings = held.claim, ports.settings
    place = f"{claim.turn}:{run.step}:{run.ordinal}"
    sessions = [str(uuid5(_NAMES, f"{place}:{at}:session")) for at in range(len(tasks))]
    turns = [uuid5(_NAMES, f"{place}:{at}:turn") for at in range(len(tasks))]
    titles = [" ".join(task.goal.split())[:80] for task in tasks]
    tools = [_tools_of(ports, held, task) for task in tasks]
    keys = {names: prefixing.key_of_children(ports, claim, names) for names in set(tools)}
    params = {
        "step": run.step, "ordinal": run.ordinal, "holder": claim.holder, "requested_by": claim.requested_by,
        "background": background, "cap_usd": cap, "aging_s": AGING[TurnClass.CHILD],
        "deadline_s": settings.child_deadline_s, "max_steps": settings.child_max_steps,
        "limit_s": settings.children_limit_s,
        "c_session": array(sessions), "c_turn": array(map(str, turns)), "c_index": array(range(len(tasks))),
        "c_workspace": array(str(_folder(held, run, at)) for at in range(len(tasks))),
        "c_title": array(titles), "c_payload": array(_input(task) for task in tasks),
        "c_tools": array(map(",".join, tools)), "c_shared": array(keys[names] for names in tools),
    }  # fmt: skip
    fence.rows(ports, held, waiting.SPAWN, params)
    for at, turn in enumerate(turns):
        emit(
            ports, held, EventKind.CHILD_STARTED, step=run.step, ordinal=run.ordinal, index=at, turn=str(turn),
            session=sessions[at], title=titles[at], background=background,
        )  # fmt: skip
    for _ in turns:
        ports.doorbell.ring(TurnClass.CHILD)


def _tools_of(ports: Ports, held: Held, task: Task) -> tuple[str, ...]:
    """What its task names, of what a child may have; all of that where the task names none."""
    may = toolset.of_child(held.claim.tools, held.claim.depth + 1, ports.settings.spawn_depth)
    return tuple(name for name in may if not task.tools or name in task.tools)


def _input(task: Task) -> str:
    return blocks.join([blocks.text(child.task(task.goal, task.context))])


def _folder(held: Held, run: Run, at: int) -> Path:
    """A child's own workspace. The turn stands in its name: steps begin anew with each turn of a session."""
    name = f"{held.claim.turn.hex[-8:]}-{run.step}-{run.ordinal}-{at + 1}"
    return held.claim.workspace / CHILDREN / name


def _begun(rows: Sequence[DictRow]) -> str:
    names = "\n".join(f"- child {row['child_index'] + 1}: {row['title']}" for row in rows)
    head = f"{len(rows)} children work in the background; each summary comes to this conversation when it is there."
    return f"{head}\n{names}"


def _rows(ports: Ports, held: Held, run: Run) -> list[DictRow]:
    """The run's children as they are. What they cost and may still cost the parent is taken over from the same read."""
    params = {"turn": held.claim.turn, "step": run.step, "ordinal": run.ordinal}
    rows = ports.database.read(lambda c: every(c, waiting.CHILDREN_OF_RUN, params))
    if rows:
        held.money.children_spent, held.money.promised = rows[0]["all_usd"], rows[0]["promised_usd"]
    return rows

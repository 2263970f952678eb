"""Delegated work: children made once, waited for without a worker, each answered by one bounded summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast
from uuid import UUID, uuid5

from psycopg.rows import DictRow

from shared.request import blocks
from shared.store.arrays import array
from shared.store.statements import every, waiting
from shared.text import bounded, clean_text
from shared.values import AGING, TERMINAL, EventKind, ParkReason, RunStatus, TurnClass, TurnStatus
from workers.emit import emit
from workers.held import Held
from workers.outgoing import Finished
from workers.ports import Ports
from workers.recording import Run
from workers.tools.context import ToolRefused
from workers.waiting import late, toolset
from workers.waiting.state import Answered, Stand, Wait
from workers.waiting.writes import fenced

_NAMES = UUID("6f1d1f0e-0c0b-5f0e-9a3e-3d2f6a0c7b11")
LEAST_TOKENS = 300
FRAME = (
    "You do one piece of work for another agent, which sees nothing of it but your last message. Write there what you"
    " found, with its sources, what you did not find, and the paths of the files you wrote. Nobody answers questions."
)


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
        except ToolRefused as refused:
            return _answered(run, refused.message, RunStatus.FAILED)
        _spawn(ports, held, run, tasks, background=background)
        rows = _rows(ports, held, run)
    if background:
        return _answered(run, _begun(rows), RunStatus.DONE)
    waited_for = [row for row in rows if TurnStatus(row["status"]) not in TERMINAL]
    if waited_for and not rows[0]["over"]:
        return Wait(ParkReason.CHILDREN, ports.settings.children_limit_s)
    if waited_for:
        stopped = late.stop(ports, [row["id"] for row in waited_for])
        rows = [{**row, "error_text": late.TOO_LATE} if row["id"] in stopped else row for row in _rows(ports, held, run)]
    share = max(LEAST_TOKENS, room_tokens / max(1, len(rows)))
    for row in rows:
        emit(
            ports, held, EventKind.CHILD_FINISHED, step=run.step, ordinal=run.ordinal, index=row["child_index"],
            turn=str(row["id"]), session=str(row["session"]), status=row["status"], title=row["title"],
        )  # fmt: skip
    text = "\n\n".join(summary(row, len(rows), share) for row in rows)
    failed = all(row["status"] != TurnStatus.DONE for row in rows)
    return _answered(run, text, RunStatus.FAILED if failed else RunStatus.DONE)


def summary(row: DictRow, of: int, share_tokens: float) -> str:
    """What the parent reads of one child: how it ended, where its files are, and its last message within the share."""
    cost = f"${row['usd']:.4f}"
    folder = f"children/{row['workspace'].rsplit('/', 1)[-1]}/"
    head = f"[child {row['child_index'] + 1} of {of}: {row['status']}, {row['steps']} steps, {cost}, files in {folder}]"
    if row["status"] == TurnStatus.DONE:
        said = row["answer"] or "(it said nothing)"
    elif TurnStatus(row["status"]) in TERMINAL:
        said = f"it did not finish: {row['error_text'] or row['status']}"
    else:
        said = "it was not ready in time and was stopped"
    return f"{head}\n{bounded(said, int(share_tokens * 3))}"


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


def _spawn(ports: Ports, held: Held, run: Run, tasks: Sequence[Task], *, background: bool) -> None:
    claim, settings = held.claim, ports.settings
    place = f"{claim.turn}:{run.step}:{run.ordinal}"
    cap = None
    if claim.turn_cap_usd is not None:
        left = max(Decimal("0.000001"), claim.turn_cap_usd - held.money.turn_spent - held.money.children_spent)
        cap = (left / len(tasks)).quantize(Decimal("0.000001"))
    turns = [uuid5(_NAMES, f"{place}:{at}:turn") for at in range(len(tasks))]
    titles = [" ".join(task.goal.split())[:80] for task in tasks]
    params = {
        "step": run.step, "ordinal": run.ordinal, "holder": claim.holder, "requested_by": claim.requested_by,
        "background": background, "cap_usd": cap, "aging_s": AGING[TurnClass.CHILD],
        "deadline_s": settings.child_deadline_s, "max_steps": settings.child_max_steps,
        "limit_s": settings.children_limit_s,
        "c_session": array(str(uuid5(_NAMES, f"{place}:{at}:session")) for at in range(len(tasks))),
        "c_turn": array(map(str, turns)), "c_index": array(range(len(tasks))),
        "c_workspace": array(
            str(claim.workspace / "children" / f"{run.step}-{run.ordinal}-{at + 1}") for at in range(len(tasks))
        ),
        "c_title": array(titles), "c_payload": array(blocks.join([blocks.text(_input(task))]) for task in tasks),
        "c_tools": array(",".join(_tools_of(ports, held, task)) for task in tasks),
    }  # fmt: skip
    fenced(ports, held, waiting.SPAWN, params)
    for at, turn in enumerate(turns):
        emit(
            ports, held, EventKind.CHILD_STARTED, step=run.step, ordinal=run.ordinal, index=at, turn=str(turn),
            title=titles[at], background=background,
        )  # fmt: skip
    for _ in turns:
        ports.doorbell.ring(TurnClass.CHILD)


def _tools_of(ports: Ports, held: Held, task: Task) -> tuple[str, ...]:
    """What its task names, of what a child may have; all of that where the task names none."""
    may = toolset.of_child(held.claim.tools, held.claim.depth + 1, ports.settings.spawn_depth)
    return tuple(name for name in may if not task.tools or name in task.tools)


def _input(task: Task) -> str:
    context = f"\n\nContext:\n{task.context}" if task.context else ""
    return f"{FRAME}\n\nGoal:\n{task.goal}{context}"


def _begun(rows: Sequence[DictRow]) -> str:
    names = "\n".join(f"- child {row['child_index'] + 1}: {row['title']}" for row in rows)
    head = f"{len(rows)} children work in the background; each summary comes to this conversation when it is there."
    return f"{head}\n{names}"


def _rows(ports: Ports, held: Held, run: Run) -> list[DictRow]:
    params = {"turn": held.claim.turn, "step": run.step, "ordinal": run.ordinal}
    return ports.database.read(lambda c: every(c, waiting.CHILDREN_OF_RUN, params))


def _answered(run: Run, text: str, status: RunStatus) -> Answered:
    error = status is not RunStatus.DONE
    return Answered(Finished(run.step, run.ordinal, run.call.id, run.call.name, status, text, is_error=error))

"""Of children that share a cold prefix one goes ahead: it dies, is cancelled, or is told to wait. The rest go on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from functools import partial

from deploy.drill import blows, load
from deploy.drill.figures import Figures, account
from deploy.drill.rig import Rig, slack, until


def struck(rig: Rig, figures: Figures, *, how: str) -> None:
    """The leader is struck before its call; what it led goes on, and its parent hears of all."""
    rig.workers_ready(2, of_more=True)
    recorded = rig.arm("recorded")
    turns = load.delegating(rig)
    recorded.arrived()
    leader = rig.arm("before_call")  # the parent's own call is over: the next one is the first child's
    recorded.go()
    pid = leader.arrived()
    turn, session = _who(rig, pid, turns.turns)
    match how:
        case "killed":
            _, hand = blows.frozen(rig, pid)
            at = rig.kill(pid, signal.SIGKILL)
            figures.resumes += blows.resumed(rig, [(at, hand)], 30)
            account(rig, figures, turns, may_be_unknown=hand.started)
        case "cancelled":
            rig.cancel(turn)
            leader.go()
            figures.resumes.append(blows.moving(rig, turns.turns))
            account(rig, figures, turns, ends=("done", "cancelled"))
        case _:
            rig.script(session, [{"fault": {"kind": "status", "status": 429, "retry_after": 6}}])
            leader.go()
            figures.resumes.append(blows.moving(rig, turns.turns))
            before = figures.billed_again
            account(rig, figures, turns, seconds=90)
            figures.billed_again = before + max(0, figures.billed_again - before - 1)  # refused with 429: no bill


def _who(rig: Rig, pid: int, parents: tuple[str, ...]) -> tuple[str, str]:
    """The one child of these that its worker has begun."""
    query = (
        "select t.id::text as turn, t.session::text from turns t join workers w on w.boot_id = t.holder"
        " where w.pid = %s and t.parent = any(%s::uuid[]) and t.status = 'running'"
    )
    rows = until(lambda: rig.rows(query, pid, list(parents)), 10 * slack(), "the leader")
    return rows[0]["turn"], rows[0]["session"]


ROWS: Mapping[str, Callable[[Rig, Figures], None]] = {
    f"leader:{how}": partial(struck, how=how) for how in ("killed", "cancelled", "throttled")
}

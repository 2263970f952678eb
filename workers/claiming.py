"""From a doorbell to a held turn: claim the next one that may run, and read what its holder must know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from psycopg.rows import DictRow

from shared.providers import scopes
from shared.providers.chains import Link
from shared.store import windows
from shared.store.pool import Connection
from shared.store.statements import admission, leading, one, run, trees
from shared.values import Purpose, SessionKind, TurnClass
from workers import snapshot
from workers.held import Claim, Held, Money
from workers.pause import Point
from workers.ports import Ports
from workers.reduction import state
from workers.waiting import toolset


def claim_next(ports: Ports, classes: Sequence[TurnClass], name: UUID) -> Held | None:
    """Claim and load one turn, or None. A claim carries a name, so that one whose reply was lost is found again."""

    def recover(connection: Connection) -> DictRow | None:
        run(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
        return one(connection, admission.CLAIMED, {"holder": ports.life.boot_id, "claim": name})

    row = ports.database.write(lambda c: _claim(c, ports, classes, name), recover=recover)
    return None if row is None else _held(ports, row)


def _claim(connection: Connection, ports: Ports, classes: Sequence[TurnClass], name: UUID) -> DictRow | None:
    limits = admission.limits(ports.settings, ports.life.boot_id)  # reads files: before anybody waits for the lock
    with connection.transaction():
        run(connection, admission.CLAIM_LOCK_TAKE, {"key": admission.CLAIM_LOCK})
        picked = admission.pick(connection, classes, limits)
        if picked is None:
            return None
        ports.pauses.at(Point.CLAIMING)
        params = {"session": picked["session"], "turn": picked["id"], "holder": ports.life.boot_id, "claim": name}
        row = one(connection, admission.CLAIM, params)
        if row is not None and row["shared_key"] is not None and row["step"] == 0:
            one(connection, leading.LEAD, {**params, "key": row["shared_key"], "model": row["model"]})
    return row


def question_may_run(ports: Ports) -> bool:
    """Whether a question waits that could be claimed at this moment. A hint: nothing is claimed by it."""

    def look(connection: Connection) -> bool:
        if one(connection, admission.QUESTION_WAITS, {}) is None:
            return False
        return (
            admission.pick(connection, (TurnClass.INTERACTIVE,), admission.limits(ports.settings, ports.life.boot_id))
            is not None
        )

    return ports.database.read(look)


def is_left(ports: Ports, held: Held) -> bool:
    """Whether this is a child of something that is over: woken by the end of its own child while the tree is being
    cancelled, it would spend a call or two before its process asks."""
    if held.claim.parent is None:
        return False
    return ports.database.read(lambda c: one(c, trees.IS_LEFT, {"turn": held.claim.turn})) is not None


def _held(ports: Ports, row: DictRow) -> Held:
    kind = SessionKind(row["kind"])
    listed = None if row["tools"] is None else tuple(row["tools"])
    claim = Claim(
        turn=row["turn"],
        session=row["session"],
        fence=row["fence"],
        turn_class=TurnClass(row["class"]),
        holder=ports.life.boot_id,
        attempts=row["attempts"],
        takeovers=row["takeovers"],
        requested_by=row["requested_by"],
        profile=row["profile"],
        provider=row["provider"],
        model=row["model"],
        kind=kind,
        depth=row["depth"],
        listed=listed,
        tools=(
            toolset.of_session(kind, listed, ports.settings.spawn_depth)
            if row["prefix"] is None
            else snapshot.of_prefix(ports.database, row["prefix"])
        ),
        parent=row["parent"],
        shared_key=row["shared_key"],
        workspace=Path(row["workspace"]),
        folder=Path(row["folder"]) if row["folder"] else None,
        max_steps=row["max_steps"],
        session_started=row["session_started"].isoformat(),
        seconds_left=row["seconds_left"],
        waited_s=row["waited_s"],
        owner=scopes.owner(row["job"], row["job_name"], row["asked_by"]),
    )
    return Held(
        claim=claim,
        step=row["step"],
        steps=row["steps"],
        refunds=row["refunds"],
        money=Money.of(row),
        warned=dict(row["warned"]),
        prefix=row["prefix"],
        last_edit=row["last_edit"],
        baseline=(row["baseline_estimate"], row["baseline_billed"]) if row["baseline_billed"] is not None else None,
        pinned=row["last_breakpoint_message"],
        chain=(row["chain_blocks"], row["chain_digest"]) if row["chain_blocks"] is not None else None,
        next_ordinal=row["next_ordinal"],
        context=state.of_row(row),
        clock=row["now"],
        failed_tries=row["failed_tries"],
        failed_purpose=Purpose(row["failed_purpose"]) if row["failed_purpose"] else None,
        limits=windows.of(ports.database, ports.settings, row["provider"], row["model"]),
        primary=Link(row["primary_provider"], row["primary_model"]),
        spoke=row["spoke"],
        out_s=row["out_s"],
        prices=ports.settings.prices,
        money_late=row["money_late"],
        last_tool=row["last_tool"],
        stopped_tools=row["stopped_tools"] or {},
    )

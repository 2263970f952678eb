"""The session's prefix: built once, stored as sent, used from the row ever after, whatever the builder says later."""

from __future__ import annotations

from datetime import datetime

from shared.errors import LeaseLost
from shared.request.assembled import Request
from shared.store import transcript
from shared.store.pool import Connection
from shared.store.statements import one, run, step
from shared.values import SessionKind
from workers import fence
from workers.held import Held
from workers.ports import Ports
from workers.prompt import child, system
from workers.prompt.prefix import prefix_digest
from workers.tools import registry


def ensure(ports: Ports, held: Held) -> None:
    """Adopt a prefix if the session has none yet: its first epoch begins."""
    if held.prefix is not None:
        return
    built = system.build(
        system.PromptInputs(
            session=str(held.claim.session),
            model=held.claim.model,
            provider=held.claim.provider,
            started=datetime.fromisoformat(held.claim.session_started),
            zone=ports.settings.team_zone,
            workspace=child.house(held.claim.workspace, held.claim.depth),
            attached=held.claim.folder,
            caller_text=child.FRAME if held.claim.kind is SessionKind.CHILD else "",
            tools=held.claim.tools,
        )
    )
    tools_text = registry.schema_text(held.claim.tools)
    digest = prefix_digest(built.system_text, tools_text)
    params = {
        "digest": digest, "system_text": built.system_text, "stable_length": built.stable_length,
        "context_length": built.context_length, "tools_text": tools_text, "session": held.claim.session,
        "fence": held.claim.fence, "cause": "a new session",
    }  # fmt: skip

    def work(connection: Connection) -> int:
        with connection.transaction():
            run(connection, step.PREFIX_SAVE, params)
            row = one(connection, step.PREFIX_ADOPT, params)
        if row is None:
            raise LeaseLost
        return row["last_edit"]

    def recover(connection: Connection) -> int | None:
        fence.confirm(connection, held)
        row = connection.execute(
            "select last_edit from sessions where id = %s and prefix = %s", (held.claim.session, digest)
        ).fetchone()
        return None if row is None else row[0]

    held.last_edit = ports.database.write(work, recover=recover)
    held.prefix = digest


def begin_epoch(ports: Ports, held: Held, cause: str) -> None:
    """The same prefix again, as an edit: signed reasoning of what stands before it is left out from here on, for good.

    Sent twice, it is two such edits, which say the same.
    """
    params = {"digest": held.prefix, "session": held.claim.session, "fence": held.claim.fence, "cause": cause}

    def work(connection: Connection) -> int:
        row = one(connection, step.PREFIX_ADOPT, params)
        if row is None:
            raise LeaseLost
        return row["last_edit"]

    def recover(connection: Connection) -> int | None:
        fence.confirm(connection, held)
        return None

    held.last_edit = ports.database.write(work, recover=recover)
    held.request, held.chain, held.pinned, held.baseline = None, None, None, None
    held.unread.clear()


def cold_request(ports: Ports, held: Held, *, final: bool = False) -> Request:
    """The request as the rows make it now: read whole, nothing from memory."""
    prefix = held.prefix
    if prefix is None:
        raise RuntimeError("the session has no prefix yet")
    return ports.database.read(lambda c: transcript.project(c, held.claim.session, prefix, final=final))

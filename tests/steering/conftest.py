"""A worker's parts that hear of words as a worker does: by a hint, or by the question that it asks each second."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from shared import stream
from shared.request import blocks
from shared.store import intake, principals
from shared.store.intake import Admitted
from shared.store.pool import Connection
from shared.values import OnBusy, PrincipalKind, Role, TurnClass
from tests.ground import Ground, Rehearsal, ground, until
from workers.hints import Hints


@dataclass(slots=True)
class Desk:
    """A worker that runs turns in a thread of its own, and people who speak to them."""

    ground: Ground
    provider: Rehearsal
    hinted: bool = True
    client: Any = None
    _running: list[threading.Thread] = field(default_factory=list[threading.Thread])

    def run(self) -> None:
        """Answer the doorbell, aside."""
        thread = threading.Thread(target=self.ground.look, daemon=True)
        thread.start()
        self._running.append(thread)

    def done(self, seconds: float = 30.0) -> None:
        """Until what was begun has ended."""
        for thread in self._running:
            thread.join(seconds)
            assert not thread.is_alive(), "the worker did not come to an end"

    def session(self, *replies: dict[str, Any], **more: Any) -> UUID:
        session = self.ground.session(**more)
        self.provider.script(list(replies), session=str(session))
        return session

    def person(self, name: str, role: Role = Role.MEMBER) -> UUID:
        with self.ground.database.connection() as connection:
            return principals.ensure_principal(connection, name, PrincipalKind.PERSON, role)

    def say(
        self, session: UUID, text: str, who: UUID | None = None, *, turn: UUID | None = None, tell: bool = True
    ) -> Admitted:
        """As the API does it: rows, then the hint. With `turn`, to that one."""
        new = intake.NewTurn(
            session, who or self.ground.person, TurnClass.INTERACTIVE, blocks.join([blocks.text(text)]),
            deadline_s=600, max_steps=90,
        )  # fmt: skip

        def work(connection: Connection) -> Admitted:
            with connection.transaction():
                if turn is not None:
                    return intake.steer(connection, turn, new, queue_bound=100)
                return intake.admit(connection, new, on_busy=OnBusy.STEER, queue_bound=100)

        said = self.ground.database.read(work)
        if tell and self.hinted and said.how is intake.How.STEERED:
            self.client.publish(stream.HINTS, f"steer:{said.turn}")
        return said

    def streaming(self, session: UUID, deltas: int = 1, calls: int = 1) -> None:
        """Until so many pieces of the answer to the call of that number have come."""

        def seen() -> bool:
            found = self.provider.ledger(session)
            turns = self.ground.rows("select id from turns where session = %s and status = 'running'", session)
            texts = [e for t in turns for e in self.ground.events(t["id"]) if e.kind.value == "text.delta"]
            last = [e for e in texts if e.step == texts[-1].step] if texts else []
            return len(found) == calls and len("".join(e.data["text"] for e in last).split()) >= deltas

        until(seen, 15, "the stream of the answer")

    def messages(self, session: UUID) -> list[tuple[str, str, bool]]:
        """(role, text, cut) of each row of the transcript."""
        rows = self.ground.rows("select role, content, cut from messages where session = %s order by id", session)
        return [
            (r["role"], " ".join(blocks.text_of(block) for block in blocks.split(r["content"])), r["cut"]) for r in rows
        ]

    def sent(self, turn: UUID) -> list[str | None]:
        """What went out of each message of a person, where it is not what the person wrote."""
        rows = self.ground.rows(
            "select sent from messages where turn = %s and role = 'user' and author <> 'tool' order by id", turn
        )
        return [None if r["sent"] is None else blocks.text_of(blocks.split(r["sent"])[0]) for r in rows]

    def sound(self, session: UUID, *, faults: int = 0, apart: int = 0) -> list[dict[str, Any]]:
        """The session's calls as the provider saw them: none refused, none that does not extend the one before, but for
        `apart` that carry no tools; `faults` of its own making; and nothing that waits unread."""
        calls = self.provider.ledger(session)
        assert len([c["differs_at"] for c in calls if c["extended"] is False]) == apart
        states = [c["state"] for c in calls]
        assert states.count("fault") == faults
        assert set(states) <= {"done", "client_closed", "fault"}
        assert self.ground.rows("select id from inbox where session = %s and folded_into is null", session) == []
        return calls


@contextlib.contextmanager
def desk(
    database_url: str, redis_url: str, provider: Rehearsal, home: Path, *, hints_url: str | None, **more: Any
) -> Generator[Desk]:
    """`hints_url` None: nobody tells this worker anything."""
    provider.reset()
    with ground(database_url, redis_url, provider.url, home, max_output_tokens=30_000, **more) as made:
        client = stream.connect(hints_url or "redis://127.0.0.1:1/0")
        hints = Hints(made.turns, made.database, made.ports.life, client)
        hints.start()
        if hints_url:
            until(lambda: any(t.name == "hints-listen" for t in threading.enumerate()), 5, "a listener")
            channels: Any = client
            until(lambda: channels.pubsub_numsub(stream.HINTS)[0][1] > 0, 10, "a subscription")
        try:
            yield Desk(made, provider, hints_url is not None, client)
        finally:
            hints.stop()
            time.sleep(0)


@pytest.fixture
def at(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Desk]:
    with desk(database_url, redis_url, provider, tmp_path, hints_url=redis_url, approve_tools="write_file") as made:
        yield made


@pytest.fixture
def deaf(database_url: str, redis_url: str, provider: Rehearsal, tmp_path: Path) -> Generator[Desk]:
    """Redis carries no hint to it."""
    with desk(database_url, redis_url, provider, tmp_path, hints_url=None) as made:
        yield made

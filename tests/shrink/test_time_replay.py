"""Each request that ever went out is rebuilt from rows to the byte, whatever was edited before it and after it.

A die decides what happens between the calls: words, tool steps, hours of silence after which the past is pruned,
compactions by a summariser that quotes what it sees, stubs and summaries anywhere, another prefix, rewinds, restores.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from deploy.local.servers import Servers
from shared.request import blocks
from shared.request.edits import EditRow
from shared.store.statements import one, step
from shared.values import TurnClass
from tests.api.conftest import fresh_database
from tests.ground import Ground, Rehearsal, ground
from tests.shrink.compacting import todo
from tests.shrink.conftest import Bodies, advance, assert_replayed
from tests.shrink.travel import Reply, ask_compact, broken, came_of, edited, messages_of, restored, rewound, said

ACTS = {"speak": 10, "doze": 4, "compact": 3, "stub": 2, "summarise": 2, "rebuild": 2, "rewind": 4, "restore": 3}


@pytest.fixture(scope="module")
def worker(
    servers: Servers, template: str, provider: Rehearsal, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Ground]:
    provider.reset()
    with (
        fresh_database(servers, template) as url,
        ground(
            url, servers.valkey.url, provider.url, tmp_path_factory.mktemp("home"), tail_messages=3, tail_tokens=3_000
        ) as made,
    ):
        yield made


@dataclass
class Story:
    """One session, what was said in it, and what was taken back."""

    worker: Ground
    provider: Rehearsal
    session: UUID
    dice: random.Random
    turns: dict[UUID, tuple[int, int]] = field(default_factory=dict[UUID, tuple[int, int]])
    """Each with its first and last message."""
    rewinds: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Those in force."""
    acts: list[str] = field(default_factory=list[str])
    compacted: int = 0

    def gone(self, turn: UUID) -> bool:
        return any(first <= self.turns[turn][0] <= last for first, last in self.rewinds.values())

    @property
    def standing(self) -> list[UUID]:
        return [turn for turn in self.turns if not self.gone(turn)]

    def words(self, *, gone: bool) -> list[str]:
        return [f"word{at}." for at, turn in enumerate(self.turns) if self.gone(turn) is gone]

    def speak(self) -> None:
        word = f"word{len(self.turns)}."
        replies: list[Reply] = [
            {"text": f"step {at} {word}", "tools": [todo(at, 12)] * self.dice.choice([1, 3])}
            for at in range(self.dice.choice([0, 0, 1, 2]))
        ]
        replies.append({"text": f"answer {word}", **({"thinking": "hm"} if self.dice.random() < 0.5 else {})})
        text = f"{word} " + "más 漢字 " * self.dice.choice([1, 40, 400])
        turn = said(self.worker, self.provider, self.session, text, *replies)
        self.turns[turn] = messages_of(self.worker, turn)

    def stub(self) -> None:
        turn = self.dice.choice(self.standing)
        row = self.dice.choice(self.worker.rows("select id, content from messages where turn = %s", turn))
        block = self.dice.randrange(len(blocks.split(row["content"])))
        edited(self.worker, self.session, EditRow(0, "stub", row["id"], block=block, text=f"[left out, {row['id']}]"))

    def summarise(self) -> None:
        """Of whole turns, so that no call is parted from its results; the first of their messages may stay."""
        standing = self.standing
        at = self.dice.randrange(len(standing))
        first, last = self.turns[standing[at]][0], self.turns[self.dice.choice(standing[at:])][1]
        kept = [first] if self.dice.random() < 0.5 else None
        edited(self.worker, self.session, EditRow(0, "summary", first, last, text=f"summary {last}", kept=kept))

    def doze(self) -> None:
        advance(self.worker, 5_000)

    def compact(self) -> None:
        made = ask_compact(self.worker, self.session)
        self.worker.look_once(TurnClass.CHORE)
        outcome = came_of(self.worker, self.session, made)["outcome"]
        self.compacted += outcome["result"] == "done"

    def rebuild(self) -> None:
        """Another system prompt, as whoever rebuilds it adopts it."""
        query = "select s.fence, p.* from sessions s join prefixes p on p.digest = s.prefix where s.id = %s"
        row = self.worker.one(query, self.session)
        system = [*blocks.split(row["system_text"])[:-1], blocks.text(f"Rebuilt after act {len(self.acts)}.")]
        values = {
            **row, "digest": f"other-{self.session}-{len(self.acts)}", "system_text": blocks.join(system),
            "session": self.session, "cause": "test",
        }  # fmt: skip
        assert self.worker.database.read(lambda c: one(c, step.PREFIX_FIRST, values)) is not None

    def rewind(self) -> None:
        came = rewound(self.worker, self.session, self.dice.choice(self.standing))
        self.rewinds[came["edit"]] = (came["first"], came["last"])

    def restore(self) -> None:
        edit = self.dice.choice(list(self.rewinds))
        restored(self.worker, self.session, edit)
        del self.rewinds[edit]

    def deck(self) -> list[str]:
        """Each act so many times, in an order of the die."""
        cards = [name for name, times in ACTS.items() for _ in range(times)]
        self.dice.shuffle(cards)
        return ["speak", "speak", *cards]

    def play(self, name: str) -> bool:
        """False where it cannot be played yet: nothing stands, or nothing is taken back."""
        if name == "restore" and not self.rewinds:
            return False
        if name not in ("speak", "restore", "doze") and not self.standing:
            return False
        act: Callable[[], None] = getattr(self, name)
        act()
        self.acts.append(name)
        return True


@pytest.mark.parametrize("seed", [1, 2])
def test_any_request_is_rebuilt_to_the_byte_and_holds_nothing_that_was_taken_back(
    seed: int, worker: Ground, provider: Rehearsal, bodies: Bodies
) -> None:
    story = Story(worker, provider, worker.session(), random.Random(seed))
    deck = story.deck()
    while deck:
        before = len(bodies(story.session))
        card = deck.pop(0)
        if not story.play(card):
            deck += ["speak", "rewind", card]
            continue
        for body in bodies(story.session)[before:]:
            held = [word for word in story.words(gone=True) if word.encode() in body]
            assert held == [], story.acts
    sent = bodies(story.session)
    assert len(sent) > 20, story.acts
    decided = {
        row["decision"] for row in worker.rows("select decision from reductions where session = %s", story.session)
    }
    assert {"prune", "compact"} <= decided, story.acts
    assert story.compacted, story.acts
    assert broken(worker, story.session) == 0, story.acts
    assert_replayed(worker, story.session, sent)
    statuses = worker.rows("select distinct status from calls where session = %s", story.session)
    assert [row["status"] for row in statuses] == ["settled"]

"""Four conversations as values, each made from a seed: a day, a sparse chat, a night run, a team's session.

A plan says when somebody speaks, what the model then calls and answers, which files the tools will read, and which
facts lie where and are asked for when. It is played through the real stack (drive.py); nothing here knows how.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.bench.day import texts

HOUR, DAY = 3_600.0, 86_400.0
SMALLEST, LARGEST = 200, 30_000
STEPS = (6, 14, 18, 19, 16, 12, 8, 4, 3)
"""How many turns in a hundred take no step, one, two …"""
PLACES = {"person": 30, "restated": 35, "result": 35}
"""Where facts stand, in per cent; see Fact. A third of them no answer repeats: what a stub or a summary takes away."""


@dataclass(frozen=True, slots=True)
class Wish:
    tool: str
    input: dict[str, object]


@dataclass(frozen=True, slots=True)
class Step:
    """One reply that calls tools."""

    wishes: tuple[Wish, ...]
    text: str
    thinking: str


@dataclass(frozen=True, slots=True)
class Fact:
    """`where`: told by the `person`; found and `restated` in the answer; or left in the `result`."""

    subject: str
    value: str
    where: str
    path: str | None


@dataclass(slots=True)
class Turn:
    """`at_s` from the conversation's first word. `scaffold`: characters of a machine-built message that never change.
    `asks`: the fact asked for, which the model is to answer from what it sees; such a turn has no steps of its own."""

    at_s: float
    text: str
    steps: tuple[Step, ...] = ()
    answer: str = ""
    speaker: int = 0
    scaffold: int | None = None
    asks: Fact | None = None


@dataclass(slots=True)
class Plan:
    name: str
    seed: int
    turns: list[Turn] = field(default_factory=list[Turn])
    files: dict[str, str] = field(default_factory=dict[str, str])
    facts: list[Fact] = field(default_factory=list[Fact])

    @property
    def calls(self) -> int:
        return sum(len(turn.steps) + 1 for turn in self.turns)


class Maker:
    """Makes turns of one plan; what it hands out depends on the seed alone."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = random.Random(f"{name} {seed}")
        self.plan = Plan(name, seed)
        self._subjects = texts.subjects(self.rng)
        self._read: list[str] = []
        self._to_ask: list[tuple[int, Fact]] = []

    def size(self) -> int:
        """Characters of a result, evenly over the logarithm: most are short, most of the matter is in long ones."""
        return int(math.exp(self.rng.uniform(math.log(SMALLEST), math.log(LARGEST))))

    def file(self, planted: texts.Planted | None = None) -> str:
        """A new file's path; one that holds a fact is named for what the fact is about."""
        folder = self.rng.choices(list(texts.KINDS), [share for _, _, share in texts.KINDS.values()])[0]
        writer, ending, _ = texts.KINDS[folder]
        name = planted[0].rpartition(" ")[2].lower() if planted else f"{self.rng.choice(texts.WORDS)}"
        path = f"{folder}/{name}-{len(self.plan.files):03}.{ending}"
        size = self.size()
        self.plan.files[path] = writer(self.rng, size // 2 if folder == "zh" else size, planted)
        return path

    def wish(self) -> Wish:
        """Mostly a file not read before; some read again as it was, some searched, some written."""
        roll = self.rng.random()
        if roll < 0.15 and self._read:
            return Wish("read_file", {"path": self.rng.choice(self._read)})
        if roll < 0.20 and self._read:
            pattern = self.rng.choice(("ERROR|WARN", "report|review", "limit", "amount", "订单"))
            return Wish("search_files", {"pattern": pattern, "path": self.rng.choice(self._read)})
        if roll < 0.25:
            text = texts.prose(self.rng, self.rng.randint(500, 3_000))
            return Wish("write_file", {"path": f"out/draft-{self.rng.randrange(10**6)}.md", "content": text})
        path = self.file()
        self._read.append(path)
        return Wish("read_file", {"path": path})

    def step(self, wishes: tuple[Wish, ...] | None = None) -> Step:
        count = self.rng.choices((1, 2, 3, 4), (85, 8, 5, 2))[0]
        made = wishes or tuple(self.wish() for _ in range(count))
        return Step(made, texts.sentence(self.rng), texts.prose(self.rng, self.rng.randint(60, 400)))

    def turn(self, at_s: float, steps: int, *, speaker: int = 0, scaffold: str = "") -> Turn:
        """Somebody asks for something, the model does it in so many steps."""
        tail = texts.prose(self.rng, self.rng.randint(40, 300))
        made = Turn(
            at_s, scaffold + tail, tuple(self.step() for _ in range(steps)),
            texts.prose(self.rng, self.rng.randint(150, 900)), speaker, len(scaffold) or None,
        )  # fmt: skip
        self.plan.turns.append(made)
        return made

    def plant(self, turn: Turn, where: str, lag: int) -> None:
        """Put a fact into a turn; it is asked for `lag` turns later."""
        subject, value = next(self._subjects)
        path = None
        if where == "person":
            turn.text += f" Keep in mind that {subject} is {value}."
        else:
            path = self.file((subject, value))
            turn.steps = (*turn.steps, self.step((Wish("read_file", {"path": path}),)))
        if where == "restated":
            turn.answer += f" I noted that {subject} is {value}."
        fact = Fact(subject, value, where, path)
        self.plan.facts.append(fact)
        self._to_ask.append((len(self.plan.turns) - 1 + lag, fact))

    def due(self, everything: bool = False) -> Iterator[Fact]:
        """Facts whose time to be asked for has come."""
        now = len(self.plan.turns)
        ready = [one for one in self._to_ask if everything or one[0] <= now]
        self._to_ask = [one for one in self._to_ask if one not in ready]
        yield from (fact for _, fact in ready)

    def ask(self, at_s: float, fact: Fact, speaker: int = 0) -> None:
        self.plan.turns.append(Turn(at_s, f"Question: what is {fact.subject}?", asks=fact, speaker=speaker))


def _spoken(maker: Maker, times: list[float], steps: Callable[[], int], facts: float, people: int = 1) -> None:
    """A turn at each time; some plant a fact, and facts that are due are asked for in a turn's place."""
    for at_s in times:
        speaker = maker.rng.randrange(people)
        fact = next(maker.due(), None)
        if fact is not None:
            maker.ask(at_s, fact, speaker)
            continue
        turn = maker.turn(at_s, steps(), speaker=speaker)
        if maker.rng.random() < facts:
            (where,) = maker.rng.choices(list(PLACES), list(PLACES.values()))
            maker.plant(turn, where, int(math.exp(maker.rng.uniform(0, math.log(80)))))


def _gaps(maker: Maker, start: float, count: int, gap: Callable[[], float]) -> list[float]:
    times = [start]
    for _ in range(count - 1):
        times.append(times[-1] + gap())
    return times


def day(seed: int) -> Plan:
    """Morning burst, two hours idle, afternoon, machine-built messages through the night, next morning: 110 turns.

    Like the day of reference/hermes-0.19.md 6: some 400 calls, some 830,000 tokens if never edited, the machine at
    least once an hour, so that one-hour marks lose the transcript once."""
    maker = Maker("day", seed)
    rng = maker.rng

    def pause() -> float:
        return rng.uniform(300, 900) if rng.random() < 0.04 else rng.uniform(20, 220)

    def steps() -> int:
        return rng.choices(range(9), STEPS)[0]

    _spoken(maker, _gaps(maker, 0, 34, pause), steps, 0.35)
    _spoken(maker, _gaps(maker, maker.plan.turns[-1].at_s + 2 * HOUR, 46, pause), steps, 0.35)
    scaffold = "This message was built by a schedule. " + texts.prose(rng, 2_500) + "\n"
    for at_s in _gaps(maker, maker.plan.turns[-1].at_s + 0.8 * HOUR, 12, lambda: rng.uniform(30 * 60, 58 * 60)):
        maker.turn(at_s, rng.choice((1, 1, 2, 3)), scaffold=scaffold)
    _spoken(maker, _gaps(maker, maker.plan.turns[-1].at_s + 0.8 * HOUR, 18, pause), steps, 0)
    for fact in list(maker.due(everything=True))[:6]:
        maker.ask(maker.plan.turns[-1].at_s + rng.uniform(20, 90), fact)
    return maker.plan


def sparse(seed: int) -> Plan:
    """A chat that one comes back to every half hour or so, over two days with a night between: 90 turns."""
    maker = Maker("sparse", seed)
    rng = maker.rng

    def pause() -> float:
        return rng.uniform(65 * 60, 110 * 60) if rng.random() < 0.08 else rng.uniform(6 * 60, 40 * 60)

    times = _gaps(maker, 0, 45, pause)
    times += _gaps(maker, times[-1] + 8 * HOUR, 45, pause)
    _spoken(maker, times, lambda: rng.choices(range(9), STEPS)[0], 0.3)
    return maker.plan


def night(seed: int) -> Plan:
    """Unattended: eight long turns that a machine asks for, then somebody comes and asks what was found."""
    maker = Maker("night", seed)
    rng = maker.rng
    scaffold = "Work through the queue; nobody is there to be asked. " + texts.prose(rng, 2_000) + "\n"
    at_s = 0.0
    for number in range(8):
        turn = maker.turn(at_s, rng.randint(32, 44), scaffold=scaffold)
        for where in rng.choices(list(PLACES), list(PLACES.values()), k=2 + number % 2):
            maker.plant(turn, where, 99)
        at_s += rng.uniform(30, 280)
    at_s += 5 * HOUR
    for fact in list(maker.due(everything=True))[:12]:
        maker.ask(at_s, fact)
        at_s += rng.uniform(20, 120)
    return maker.plan


def team(seed: int) -> Plan:
    """Four people in one session over a working day, now two at once, now nobody for half an hour: 130 turns."""
    maker = Maker("team", seed)
    rng = maker.rng

    def pause() -> float:
        return math.exp(rng.gauss(math.log(150), 1.0))

    times = _gaps(maker, 0, 65, pause)
    times += _gaps(maker, times[-1] + 50 * 60, 65, pause)
    _spoken(maker, times, lambda: rng.choices(range(7), (8, 22, 24, 20, 14, 8, 4))[0], 0.25, people=4)
    return maker.plan


GENERATORS: dict[str, Callable[[int], Plan]] = {"day": day, "sparse": sparse, "night": night, "team": team}

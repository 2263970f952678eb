"""The decisions alone, over the sizes of a plan: `python -m tests.bench.day.simulate [NAME…] [--seeds K] …`.

SIMULATED: nothing is sent, no row is written. `decide`, the meters and the sizes are the product's; the cache and the
bill are bill.py's, with a message as one block. It says in seconds what the whole benchmark says in minutes, and is
right to a few per cent: signed reasoning is not left out, a summary has the size that the decision assumes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from math import ceil
from statistics import mean

from shared import models
from shared.request.marked import Ttl
from tests.bench.day import plan
from tests.bench.day.bill import MODELS, PER_BLOCK, Bill, Block, Book, Cache, Message, count, parts, total
from tests.bench.day.plan import Plan
from workers.providers import prices
from workers.providers.replies import Usage
from workers.reduction import decide, meters, sizes
from workers.reduction.decide import Compact, Prune, SetTtl
from workers.reduction.sizes import STUB, SUMMARY, WORTH, Tail, Tally
from workers.reduction.state import Context

FLOOR = 5_500
"""Tokens of tools and system prompt."""
MAX_OUTPUT = 8_192
PINGS_COST = 0.8
"""Of the rewrite that they avoid (economics.md, "The fleet")."""
CUT = int(STUB * 1.3)
"""Tokens of what stands for a result."""


@dataclass(frozen=True, slots=True)
class Part:
    """A message: its tokens, and what stubs would take out of it. `text` is what it says, for results that repeat."""

    role: str
    tokens: int
    saved: int = 0
    stubs: int = 0
    text: str = ""


@dataclass(slots=True)
class Outcome:
    bills: list[Bill] = field(default_factory=list[Bill])
    decisions: list[str] = field(default_factory=list[str])
    peak: int = 0


class Played:
    """One plan under one policy: `edit` off is the transcript that is never edited."""

    def __init__(self, model: str, window: int, tail: Tail, ttl: Ttl | None, *, keep_warm: bool) -> None:
        self._book = Book()
        self._book.blocks.append(Block("text", ceil(FLOOR / MODELS[model].factor), 0))
        self._cache = Cache(self._book.tree)
        self._model, self._tail, self._fixed = model, tail, ttl
        self._window, self._keep_warm = window, keep_warm
        self._context = Context(ttl=ttl or Ttl.MINUTES)
        self._parts: list[Part] = []
        self._ids: list[int] = []
        self._number = 0
        self._pinned = self._region = 0
        self._started = datetime(2026, 11, 30, tzinfo=UTC)
        self.outcome = Outcome()

    def call(self, at_s: float, new: list[Part], output: int) -> None:
        """One call of the conversation, with the messages that came since the last."""
        now = self._started + timedelta(seconds=at_s)
        if self._keep_warm:
            self._ping(now)
        if self._fixed is None:
            new = [self._at_birth(one) for one in new]
            self._consider(now, new)
        for one in new:
            self._append(one)
        self._send(now, output)

    def _ping(self, now: datetime) -> None:
        """Reads just before the entry expires, while they have cost less than 0.8 of the write that they avoid. None
        where another life would cost less: only what has gone cold can be given an hour."""
        life = timedelta(seconds=self._context.ttl.seconds - meters.PING_EARLY_S)
        at = self._context.called_at
        known = prices.relative(self._model, self.outcome.peak, datetime.now(UTC)) or meters.ASSUMED
        price = meters.write(known, self._context.ttl) - known.read
        if meters.best_ttl(self._context, known, self.outcome.peak) is not self._context.ttl:
            return
        pings = 0
        while at is not None and at + life < now and (pings + 1) * known.read < PINGS_COST * price:
            at, pings = at + life, pings + 1
            self._send(at, 0, new=False)
            until = at + timedelta(seconds=self._context.ttl.seconds)
            self._context = replace(self._context, prefix_warm_until=until, warm_pings=pings)
            self.outcome.decisions.append("ping")

    def _at_birth(self, one: Part) -> Part:
        known = one.text and any(part.text == one.text and part.saved for part in self._parts)
        return Part(one.role, CUT) if known else one

    def _append(self, one: Part) -> None:
        self._parts.append(one)
        self._ids.append(self._message(one))

    def _message(self, one: Part) -> int:
        """A message that no cache knows, of so many tokens."""
        raw = max(1, round((one.tokens - PER_BLOCK - 4) / MODELS[self._model].factor))
        self._book.blocks.append(Block("text", raw, 0))
        return self._book.message(Message(one.role, (len(self._book.blocks) - 1,)))

    def _consider(self, now: datetime, new: list[Part]) -> None:
        tally = Tally(floor=FLOOR, total=FLOOR)
        for at, part in enumerate(self._parts):
            tally.starts.append(tally.total)
            tally.total += part.tokens
            tally.savings.append((part.saved, part.stubs))
            if part.role == "assistant":
                tally.head = at if tally.head is None else tally.head
                tally.answered = at + 1
        prompt = round(tally.total) + sum(one.tokens for one in new)
        usable = self._window - min(MAX_OUTPUT, models.max_output(self._model))
        room = int(usable * (models.CALIBRATED if self._parts else models.UNCALIBRATED))
        measured = sizes.measure(tally, self._tail, 1.0, coming=len(new), prompt=prompt, room=room)
        known = prices.relative(self._model, prompt, datetime.now(UTC)) or meters.ASSUMED
        gap = meters.gap(self._context, now)
        self._context = meters.carried(self._context, known, gap, measured)
        found = decide.decide(self._context, known, gap, measured)
        match found:
            case SetTtl(ttl):
                self._context = replace(self._context, ttl=ttl)
            case Prune(cause, ttl):
                self._prune(tally, ttl, cause, prompt, measured.drop)
            case Compact(cause, ttl):
                self._compact(tally, ttl, cause, now)
            case _:
                pass

    def _prune(self, tally: Tally, ttl: Ttl, cause: str, prompt: int, drop: int) -> None:
        first = next(at for at in range(tally.passed) if self._parts[at].stubs)
        for at in range(first, tally.passed):
            part = self._parts[at]
            if part.stubs:
                self._parts[at] = Part(part.role, part.tokens - part.saved)
                self._ids[at] = self._message(self._parts[at])
        self._edited(first, tally.passed)
        self._context = meters.pruned(
            replace(self._context, ttl=ttl), before=prompt, after=prompt - drop, trigger=decide.WARM_LEAST
        )
        self.outcome.decisions.append(f"prune {cause}")

    def _compact(self, tally: Tally, ttl: Ttl, cause: str, now: datetime) -> None:
        head = tally.head or 0
        self._send(now, SUMMARY, new=False)  # the summariser reads what stands
        self._parts[head : tally.passed] = [Part("user", SUMMARY)]
        self._ids[head : tally.passed] = [self._message(self._parts[head])]
        self._edited(head, head + 1)
        self._context = replace(self._context, ttl=ttl, meter=0.0, compact_meter=0.0, junk_tokens=0, regrow_to=0)
        self.outcome.decisions.append(f"compact {cause}")

    def _edited(self, first: int, end: int) -> None:
        """The newest mark that is left, and the end of what was edited."""
        self._pinned, self._region = min(self._pinned, first), end

    def _send(self, now: datetime, output: int, *, new: bool = True) -> None:
        model = MODELS[self._model]
        messages = [self._book.messages[one] for one in self._ids]
        path = self._book.tree.walk(self._book.tree.root("s"), model, 0, (0,), messages, self._book.blocks)
        places = {1, 1 + self._pinned} | ({len(path), 1 + self._region} if new else set[int]())
        ttl = self._fixed or self._context.ttl
        marks = tuple((place, ttl.value) for place in sorted(places) if place <= len(path))
        at = now.timestamp()
        bill, writes = self._cache.open(path, marks, at, model.minimum)
        self._cache.commit(writes, at)
        self.outcome.bills.append(Bill(bill.input, bill.read, bill.write_5m, bill.write_1h, output))
        self.outcome.peak = max(self.outcome.peak, bill.prompt)
        if not new:
            return
        warm = bill.read > FLOOR * 2
        usage = Usage(bill.input, output, bill.read, bill.write_5m, bill.write_1h)
        self._context = meters.answered(self._context, usage, warm=warm)
        until = now + timedelta(seconds=ttl.seconds)
        self._context = replace(self._context, called_at=now, prefix_warm_until=until)
        self._pinned, self._region = len(self._ids), len(self._ids)


def calls(made: Plan, model: str) -> Iterator[tuple[float, list[Part], int]]:
    """Of each call: when, the messages that came since the last, the tokens of the answer."""
    factor = MODELS[model].factor

    @cache
    def tokens(text: str) -> int:
        return ceil(count(text) * factor) + PER_BLOCK

    new: list[Part] = []
    for turn in made.turns:
        new.append(Part("user", tokens(turn.text) + 4))
        for step in turn.steps:
            inputs = [str(wish.input) for wish in step.wishes]
            output = tokens(step.text) + tokens(step.thinking) + sum(tokens(one) + 40 for one in inputs)
            yield turn.at_s, new, output
            bulky = [tokens(one) for one in inputs if tokens(one) > WORTH]
            new = [Part("assistant", output, sum(bulky) - 2 * CUT * len(bulky), len(bulky))]
            for wish in step.wishes:
                text = _result(made, wish)
                size = tokens(text) + 12
                worth = size > WORTH
                new.append(Part("user", size, size - CUT if worth else 0, int(worth), text))
        output = tokens(turn.answer or turn.text)
        yield turn.at_s, new, output
        new = [Part("assistant", output)]


def _result(made: Plan, wish: plan.Wish) -> str:
    """What the tool would give."""
    text = made.files.get(str(wish.input["path"]), "")
    if wish.tool != "search_files":
        return text or f"{wish.input['path']} was written"
    pattern = re.compile(str(wish.input["pattern"]))
    return "\n".join(line for line in text.splitlines() if pattern.search(line))


def played(
    made: Plan, model: str, window: int, tail: Tail, ttl: Ttl | None = None, *, keep_warm: bool = False
) -> Outcome:
    """The plan under the product's decisions, or, with `ttl`, never edited and marked for that long."""
    one = Played(model, window, tail, ttl, keep_warm=keep_warm)
    for at_s, new, output in calls(made, model):
        one.call(at_s, new, output)
    return one.outcome


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The decisions over generated sizes, without a stack.")
    parser.add_argument("names", nargs="*", default=list(plan.GENERATORS))
    parser.add_argument("--model", default="claude-opus-5-5")
    parser.add_argument("--window", type=int, action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tail", default="20,40000", help="messages,tokens")
    parser.add_argument("--keep-warm", action="store_true")
    asked = parser.parse_args(argv)
    tail = Tail(*map(int, asked.tail.split(",")))
    for name in asked.names:
        for window in asked.window or [1_000_000, 200_000]:
            ratios: list[float] = []
            for seed in range(1, asked.seeds + 1):
                made = plan.GENERATORS[name](seed)
                never = float(total(played(made, asked.model, window, tail, Ttl.HOUR).bills, asked.model))
                found = played(made, asked.model, window, tail, keep_warm=asked.keep_warm)
                spent = float(total(found.bills, asked.model))
                ratios.append(spent / never)
                told = {key: round(usd, 2) for key, usd in parts(found.bills, asked.model).items()}
                print(
                    f"{name} {window:,} seed {seed}: ${spent:.2f} of ${never:.2f} = {spent / never:.2f}, "
                    f"peak {found.peak:,}, {dict(Counter(found.decisions))} {told}"
                )  # fmt: skip
            print(f"{name} {window:,}: mean {mean(ratios):.2f}, worst {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What captured request bodies cost, recomputed from their bytes: `python bill.py CAPTURE --calls FILE`.

It imports nothing of the project, so that it cannot agree by construction: the layout of a prompt, the rules of the
cache, the sizes and the prices below are written down a second time, from the provider's documentation
(reference/providers.md 1.1, 1.2) and from what docs/rehearsal.md says of the rehearsal's token counts.

A request is a row of blocks over tools, system, messages; cache marks are no part of it. Equal prefixes are one node of
a tree, so that "was this very prefix cached" is a look at a number. FILE holds, in `calls`, objects with the facts that
a body does not show: `index`, `at` (seconds, the cache's clock), `started` and `first_byte` (one other clock for all),
`output` (tokens), `usd` (what was billed), `state`; others are left alone. Numbers are compared by value: a body in
which a number changes only its spelling is not told apart (the generated days hold no such number).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import bpe_openai
import orjson

MARK = "cache_control"
LOOK_BACK = 20
SECONDS = {"5m": 300.0, "1h": 3600.0}
PIECE = 200_000
NEW, OLD = 1.30, 1.02  # o200k tokens times this: docs/rehearsal.md
PER_BLOCK, PER_MESSAGE, REPLY_HEAD, IMAGE = 3, 4, 3, 1_500


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars a million tokens."""

    input: float
    output: float
    read: float

    @property
    def write_5m(self) -> float:
        return self.input * 1.25

    @property
    def write_1h(self) -> float:
        return self.input * 2


@dataclass(frozen=True, slots=True)
class Model:
    rates: Rates
    minimum: int
    factor: float
    hidden: int
    cliff: tuple[int, Rates] | None = None


MODELS = {
    "claude-fable-5-2": Model(Rates(8, 40, 0.20), 512, NEW, 286),
    "claude-fable-5-1": Model(Rates(10, 50, 0.25), 512, NEW, 286),
    "claude-opus-5-5": Model(Rates(4, 20, 0.20), 512, NEW, 286),
    "claude-opus-5": Model(Rates(5, 25, 0.50), 512, NEW, 286),
    "claude-opus-4-8": Model(Rates(5, 25, 0.50), 1024, NEW, 290),
    "claude-sonnet-5-5": Model(Rates(2, 10, 0.10), 512, NEW, 354),
    "claude-sonnet-4-6": Model(Rates(3, 15, 0.30), 1024, OLD, 496),
    "claude-haiku-5-5": Model(Rates(0.10, 0.50, 0.01), 512, NEW, 354, (100_000, Rates(0.50, 2.50, 0.05))),
    "claude-sonnet-4-5": Model(Rates(3, 15, 0.30), 1024, OLD, 496, (200_000, Rates(6, 22.5, 0.60))),
}
"""reference/providers.md 1.2; a write costs 1.25 times the input for 5 minutes, twice for an hour."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Tokens by bucket."""

    input: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.read + self.write_5m + self.write_1h

    def parts(self, model: Model) -> dict[str, Fraction]:
        """Dollars by bucket, exact."""
        rates = model.rates
        if model.cliff is not None and self.prompt > model.cliff[0]:
            rates = model.cliff[1]
        each = {
            "input": (self.input, rates.input), "read": (self.read, rates.read),
            "write_5m": (self.write_5m, rates.write_5m), "write_1h": (self.write_1h, rates.write_1h),
            "output": (self.output, rates.output),
        }  # fmt: skip
        return {name: Fraction(tokens) * Fraction(str(rate)) / 1_000_000 for name, (tokens, rate) in each.items()}

    def usd(self, model: Model) -> Fraction:
        return sum(self.parts(model).values(), Fraction(0))


@dataclass(frozen=True, slots=True)
class Block:
    """`raw`: o200k tokens; `answers`: the id of the call whose result it is."""

    kind: str
    raw: int
    chars: int
    answers: str | None = None
    calls: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    blocks: tuple[int, ...]


Marks = tuple[tuple[int, str], ...]


@dataclass(slots=True)
class Call:
    """One captured body, laid out. `path` is a node a block; `ends` how many blocks stand before and with each message;
    `front` how many stand before the first."""

    index: int
    session: str
    model: str
    max_tokens: int
    path: array[int]
    marks: Marks
    messages: array[int]
    front: tuple[int, ...]
    front_marks: Marks
    sha256: str
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def at(self) -> float:
        return float(self.facts["at"])


class Tree:
    """Prefixes: a node is a prefix, its parent the prefix one block shorter; `ends` are tokens up to and with it."""

    def __init__(self) -> None:
        self.ends: list[int] = [0]
        self._children: dict[tuple[int, Any], int] = {}

    def root(self, name: Any) -> int:
        return self._child(0, ("root", name), 0)

    def _child(self, parent: int, key: Any, size: int) -> int:
        found = self._children.get((parent, key))
        if found is None:
            found = self._children[parent, key] = len(self.ends)
            self.ends.append(self.ends[parent] + size)
        return found

    def walk(self, root: int, model: Model, tools: int, front: Sequence[int], messages: Iterable[Message],
             blocks: Sequence[Block]) -> array[int]:  # fmt: skip
        """The nodes of one request: `front` are the blocks of tools (so many) and system."""
        at, path = root, array("Q")
        for number, block in enumerate(front):
            size = math.ceil(blocks[block].raw * model.factor) + PER_BLOCK
            size += model.hidden if number == 0 and tools else 0
            at = self._child(at, ("t" if number < tools else "s", block), size)
            path.append(at)
        self.grow(path, at, model, messages, blocks)
        return path

    def grow(
        self, path: array[int], at: int, model: Model, messages: Iterable[Message], blocks: Sequence[Block]
    ) -> None:
        """The nodes of more messages, behind node `at`."""
        for message in messages:
            flag, extra = message.role, PER_MESSAGE
            for block in message.blocks:
                at = self._child(at, (flag, block), math.ceil(blocks[block].raw * model.factor) + PER_BLOCK + extra)
                path.append(at)
                flag, extra = "+", 0


class Cache:
    """The documented cache: written only at marks, found at most 20 positions back from one, alive for its TTL from the
    start of the request that last wrote or read it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._entries: dict[int, tuple[str, float]] = {}

    def open(self, path: Sequence[int], marks: Marks, at: float, minimum: int) -> tuple[Bill, list[tuple[int, str]]]:
        """The bill of a request that starts now, and what is written once its reply begins."""
        ends = self._tree.ends
        able = sorted((place, ttl) for place, ttl in marks if ends[path[place - 1]] >= minimum)
        hit = self._hit(path, able, at)
        last = able[-1][0] if able else hit
        last = max(last, hit)
        hour = max((place for place, ttl in able if ttl == "1h" and place > hit), default=hit)

        def tokens(place: int) -> int:
            return ends[path[place - 1]] if place else 0

        bill = Bill(
            input=tokens(len(path)) + REPLY_HEAD - tokens(last), read=tokens(hit),
            write_5m=tokens(last) - tokens(hour), write_1h=tokens(hour) - tokens(hit),
        )  # fmt: skip
        lived = self._refresh(path[hit - 1], at) if hit else None
        writes = [(path[place - 1], ttl) for place, ttl in able if place > hit]
        for place, ttl in able:
            if place < hit and self._refresh(path[place - 1], at) is None:
                writes.append((path[place - 1], "5m" if "5m" in (ttl, lived) else ttl))
        return bill, writes

    def _hit(self, path: Sequence[int], marks: Sequence[tuple[int, str]], at: float) -> int:
        for mark, _ in reversed(marks):
            for place in range(mark, max(0, mark - LOOK_BACK), -1):
                entry = self._entries.get(path[place - 1])
                if entry is not None and at < entry[1]:
                    return place
        return 0

    def _refresh(self, node: int, at: float) -> str | None:
        entry = self._entries.get(node)
        if entry is None or at >= entry[1]:
            return None
        self._entries[node] = (entry[0], max(entry[1], at + SECONDS[entry[0]]))
        return entry[0]

    def commit(self, writes: Iterable[tuple[int, str]], at: float) -> None:
        for node, ttl in writes:
            entry = self._entries.get(node)
            if entry is None or entry[1] < at + SECONDS[ttl]:
                self._entries[node] = (ttl, at + SECONDS[ttl])


class Book:
    """Bodies as they are read, one after another; what repeats is looked at once."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.calls: dict[int, Call] = {}
        self.blocks: list[Block] = []
        self.messages: list[Message] = []
        self._block_ids: dict[bytes, int] = {}
        self._messages: dict[bytes, tuple[int, Marks]] = {}
        self._fronts: dict[bytes, tuple[int, tuple[int, ...], Marks]] = {}

    def read(self, index: int, session: str, body: bytes) -> Call:
        """Take one body in. Raises ValueError for an automatic mark, which these rules do not know."""
        request = orjson.loads(body)
        if MARK in request:
            raise ValueError(f"call {index} has an automatic mark")
        tools, front, marks = self._front(request)
        placed = list(marks)
        messages: list[int] = []
        position = len(front)
        for message in request["messages"]:
            number, own = self._message(message)
            messages.append(number)
            placed += [(position + at, ttl) for at, ttl in own]
            position += len(self.messages[number].blocks)
        model = MODELS[request["model"]]
        path = self.tree.walk(
            self._root(request), model, tools, front, (self.messages[one] for one in messages), self.blocks
        )
        call = Call(
            index, session, request["model"], request["max_tokens"], path, tuple(placed), array("L", messages),
            front, marks, hashlib.sha256(body).hexdigest(),
        )  # fmt: skip
        call.facts["tools"] = tools
        self.calls[index] = call
        return call

    def _root(self, request: Any) -> int:
        """What must agree besides the blocks. Of its own for each state, which is stricter than the documentation where
        only the messages are set apart; no captured day changes one."""
        apart = [request.get(name) for name in ("tool_choice", "thinking", "output_config", "speed")]
        return self.tree.root((request["model"], orjson.dumps(apart)))

    def _front(self, request: Any) -> tuple[int, tuple[int, ...], Marks]:
        tools: list[Any] = request.get("tools") or []
        system: Any = request.get("system") or []
        key = orjson.dumps([tools, system])
        found = self._fronts.get(key)
        if found is None:
            whole: list[Any] = [*tools, *([system] if isinstance(system, str) else system)]
            ids = tuple(self.block(one) for one in whole)
            marks = tuple((at, ttl) for at, one in enumerate(whole, 1) if (ttl := mark_of(one)))
            found = self._fronts[key] = (len(tools), ids, marks)
        return found

    def _message(self, message: Any) -> tuple[int, Marks]:
        key = hashlib.blake2b(orjson.dumps(message), digest_size=16).digest()
        found = self._messages.get(key)
        if found is None:
            content: list[Any] = [message["content"]] if isinstance(message["content"], str) else message["content"]
            marks = tuple((at, ttl) for at, one in enumerate(content, 1) if (ttl := mark_of(one)))
            number = self.message(Message(message["role"], tuple(self.block(one) for one in content)))
            found = self._messages[key] = (number, marks)
        return found

    def message(self, message: Message) -> int:
        self.messages.append(message)
        return len(self.messages) - 1

    def block(self, block: Any) -> int:
        """Its number: equal blocks have one, a cache mark aside."""
        if not isinstance(block, str) and MARK in block:
            block = {name: value for name, value in block.items() if name != MARK}
        dumped = orjson.dumps(block)
        key = hashlib.blake2b(dumped, digest_size=16).digest()
        number = self._block_ids.get(key)
        if number is None:
            number = self._block_ids[key] = len(self.blocks)
            self.blocks.append(_block(block, dumped))
        return number

    def bill_all(self) -> dict[int, Bill]:
        """Every call with `state` done, in the order in which they overlapped: what one wrote, another may read."""
        cache = Cache(self.tree)
        known = [call for call in self.calls.values() if call.facts.get("usd") is not None]
        moments = [(call.facts["started"], 1, call) for call in known]
        moments += [(call.facts["first_byte"], 0, call) for call in known if call.facts["first_byte"] is not None]
        bills: dict[int, Bill] = {}
        waiting: dict[int, list[tuple[int, str]]] = {}
        for _, opens, call in sorted(moments, key=lambda one: (one[0], one[1], one[2].index)):
            if opens:
                bill, waiting[call.index] = cache.open(call.path, call.marks, call.at, MODELS[call.model].minimum)
                output = int(call.facts["output"])
                bills[call.index] = Bill(bill.input, bill.read, bill.write_5m, bill.write_1h, output)
            else:
                cache.commit(waiting.pop(call.index), call.at)
        return bills


def run(tree: Tree, model: str, calls: Iterable[tuple[Sequence[int], Marks, float, int]]) -> list[Bill]:
    """One conversation alone, call after call: (path, marks, at, output tokens)."""
    cache, bills = Cache(tree), list[Bill]()
    for path, marks, at, output in calls:
        bill, writes = cache.open(path, marks, at, MODELS[model].minimum)
        cache.commit(writes, at)
        bills.append(Bill(bill.input, bill.read, bill.write_5m, bill.write_1h, output))
    return bills


def total(bills: Iterable[Bill], model: str) -> Fraction:
    return sum((bill.usd(MODELS[model]) for bill in bills), Fraction(0))


def parts(bills: Iterable[Bill], model: str) -> dict[str, float]:
    found: dict[str, Fraction] = {}
    for bill in bills:
        for name, usd in bill.parts(MODELS[model]).items():
            found[name] = found.get(name, Fraction(0)) + usd
    return {name: float(usd) for name, usd in found.items()}


def mark_of(block: Any) -> str | None:
    """The TTL of a block's mark."""
    control = None if isinstance(block, str) else block.get(MARK)
    return None if control is None else control.get("ttl") or "5m"


def _block(block: Any, dumped: bytes) -> Block:
    if isinstance(block, str):
        return Block("text", count(block), len(dumped))
    kind: str = block.get("type", "tool")
    answers = block["tool_use_id"] if kind == "tool_result" else None
    calls = block["id"] if kind == "tool_use" else None
    return Block(kind, _raw(block, dumped.decode()), len(dumped), answers, calls)


def _raw(block: Any, dumped: str) -> int:
    """o200k tokens by what a block is."""
    if isinstance(block, str):
        return count(block)
    match block.get("type"):
        case "text":
            return count(block["text"])
        case "thinking":
            return count(block["thinking"])
        case "image":
            return IMAGE
        case "tool_result":
            content = block.get("content") or ""
            inner = (
                count(content) if isinstance(content, str) else sum(_raw(p, orjson.dumps(p).decode()) for p in content)
            )
            return inner + count(block["tool_use_id"])
        case _:
            return count(dumped)


_o200k = bpe_openai.get_encoding("o200k_base")


def count(text: str) -> int:
    return sum(len(_o200k.encode_ordinary(text[at : at + PIECE])) for at in range(0, len(text), PIECE))


def read_folder(folder: Path) -> Book:
    """All bodies `NNNNNN-SESSION.json` of a capture."""
    book = Book()
    for path in sorted(folder.glob("[0-9]*.json")):
        if not path.name.endswith(".headers.json"):
            index, _, session = path.stem.partition("-")
            book.read(int(index), session, path.read_bytes())
    return book


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Recompute the bill of captured bodies; exit 1 where it differs.")
    parser.add_argument("capture", type=Path)
    parser.add_argument("--calls", type=Path, required=True, help="the answer of GET /rehearsal/ledger")
    asked = parser.parse_args(argv)
    book = read_folder(asked.capture)
    for row in json.loads(asked.calls.read_bytes())["calls"]:
        if row["index"] in book.calls:
            book.calls[row["index"]].facts |= row
    bills = book.bill_all()
    differ = compare(book, bills)
    by_model: dict[str, list[Bill]] = {}
    for index, bill in bills.items():
        by_model.setdefault(book.calls[index].model, []).append(bill)
    told = {model: parts(found, model) | {"calls": len(found)} for model, found in by_model.items()}
    print(json.dumps({"calls": len(book.calls), "billed": len(bills), "models": told, "differ": differ[:20]}, indent=1))
    return 1 if differ else 0


def compare(book: Book, bills: dict[int, Bill]) -> list[str]:
    """Where the ledger's bill is another one: by bucket, where it tells them, and in dollars to the nano."""
    found: list[str] = []
    names = {"input": "input", "cache_read": "read", "cache_write_5m": "write_5m", "cache_write_1h": "write_1h"}
    for index, bill in bills.items():
        facts = book.calls[index].facts
        wrong = [f"{name} {facts[name]} here {getattr(bill, ours)}" for name, ours in names.items()
                 if name in facts and facts[name] != getattr(bill, ours)]  # fmt: skip
        usd = bill.usd(MODELS[book.calls[index].model])
        if abs(float(usd) - facts["usd"]) > 1e-9 or wrong:
            found.append(f"call {index}: ${facts['usd']:.9f}, here ${float(usd):.9f} {'; '.join(wrong)}")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the same conversation would have cost, had its past never been edited: computed by the rules of bill.py alone.

Nothing here is played: the unedited transcript is rebuilt from what was captured (each call adds the reply of the one
before and what came after it; results that were stubs from birth get the text that the tools gave), and billed by the
same cache model under other marks. An edit leaves out the signed reasoning of the reply before it, so the rebuilt
transcript lacks that one block an edit: a few tokens too cheap.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tests.bench.day.bill import MODELS, REPLY_HEAD, Bill, Block, Book, Call, Marks, Message, run


@dataclass(slots=True)
class Line:
    """An unedited transcript. `ends`: for each call of the conversation, how many messages it had seen, when it was
    made, and its output tokens."""

    model: str
    front: tuple[int, ...]
    front_ends: tuple[int, ...]
    tools: int
    messages: list[int] = field(default_factory=list[int])
    ends: list[tuple[int, float, int]] = field(default_factory=list[tuple[int, float, int]])

    def path(self, book: Book) -> array[int]:
        """The nodes of all of it."""
        root = book.tree.root(("unedited", self.model))
        found = (book.messages[one] for one in self.messages)
        return book.tree.walk(root, MODELS[self.model], self.tools, self.front, found, book.blocks)

    def blocks(self, book: Book) -> list[int]:
        """After how many blocks the front and each message end."""
        ends = [len(self.front)]
        for one in self.messages:
            ends.append(ends[-1] + len(book.messages[one].blocks))
        return ends


def unedited(book: Book, calls: Sequence[Call], results: Mapping[str, str]) -> Line:
    """`calls`: the conversation's own, answered ones, in order, which offered tools. `results`: what the tools gave, by
    the id of the call that asked."""
    front = calls[1] if len(calls) > 1 else calls[0]
    line = Line(
        front.model, calls[0].front, tuple(at for at, _ in front.front_marks), int(calls[0].facts["tools"])
    )  # fmt: skip
    for number, call in enumerate(calls):
        messages = list(call.messages)
        new = messages
        if number:
            last = max(at for at, one in enumerate(messages) if book.messages[one].role == "assistant")
            new = messages[last:]
        line.messages += [_whole(book, one, results) for one in new]
        line.ends.append((len(line.messages), call.at, int(call.facts["output"])))
    return line


def _whole(book: Book, number: int, results: Mapping[str, str]) -> int:
    """The message with the results that the tools gave."""
    message = book.messages[number]
    blocks: list[int] = []
    for at in message.blocks:
        block = book.blocks[at]
        given = results.get(block.answers) if block.answers else None
        blocks.append(at if given is None else _restored(book, at, block, given))
    return number if tuple(blocks) == message.blocks else book.message(Message(message.role, tuple(blocks)))


def _restored(book: Book, at: int, block: Block, given: str) -> int:
    full = book.block({"type": "tool_result", "tool_use_id": block.answers, "content": given})
    return full if book.blocks[full].raw > block.raw else at


def never_edited(book: Book, line: Line, ttl: str) -> list[Bill]:
    """Marks at the ends of the front, where the call before wrote, and at the end, all of one life."""
    path, ends = line.path(book), line.blocks(book)
    calls: list[tuple[Sequence[int], Marks, float, int]] = []
    before: int | None = None
    for count, at, output in line.ends:
        places = {*line.front_ends, ends[count]} | ({before} if before else set[int]())
        calls.append((path[: ends[count]], tuple((place, ttl) for place in sorted(places)), at, output))
        before = ends[count]
    return run(book.tree, line.model, calls)


def prompts(book: Book, line: Line) -> list[int]:
    """Tokens of each call's whole prompt."""
    path, ends = line.path(book), line.blocks(book)
    return [book.tree.ends[path[ends[count] - 1]] + REPLY_HEAD for count, _, _ in line.ends]


def uncached(book: Book, line: Line) -> list[Bill]:
    return [
        Bill(input=size, output=output) for size, (_, _, output) in zip(prompts(book, line), line.ends, strict=True)
    ]


def lower_bound(book: Book, line: Line) -> list[Bill]:
    """What no marks could go below while nothing is edited: each token written once, for five minutes, that live for
    ever, and read by every call after; the last call writes nothing, since nobody reads it."""
    found: list[Bill] = []
    before = 0
    sizes = prompts(book, line)
    for number, (size, (_, _, output)) in enumerate(zip(sizes, line.ends, strict=True)):
        new = size - before
        found.append(
            Bill(input=new, read=before, output=output) if number == len(sizes) - 1
            else Bill(read=before, write_5m=new, output=output)
        )  # fmt: skip
        before = size - REPLY_HEAD
    return found


def last_two_messages(book: Book, calls: Sequence[Call]) -> list[Bill]:
    """The captured bodies as they went out, but for their marks: the front's two, and the last two messages, where each
    result is a message of its own (as it is in the seeds' system, and on the wires that it speaks)."""
    marked: list[tuple[Sequence[int], Marks, float, int]] = []
    for call in calls:
        ends, place = list[int](), len(call.front)
        for one in call.messages:
            blocks = book.messages[one].blocks
            ends += [place + at for at, block in enumerate(blocks, 1) if book.blocks[block].answers]
            place += len(blocks)
            if ends[-1:] != [place]:
                ends.append(place)
        ttl = call.marks[-1][1] if call.marks else "5m"
        places = [at for at, _ in call.front_marks][:2] + ends[-2:]
        marked.append((call.path, tuple((at, ttl) for at in places), call.at, int(call.facts["output"])))
    return run(book.tree, calls[0].model, marked)


def alone(book: Book, calls: Sequence[Call]) -> list[Bill]:
    """The calls of one session as captured, as if nobody else had used the cache."""
    found = ((call.path, call.marks, call.at, int(call.facts["output"])) for call in calls)
    return run(book.tree, calls[0].model, found)


def dollars(bills: Sequence[Bill], model: str) -> float:
    return float(sum((bill.usd(MODELS[model]) for bill in bills), Fraction(0)))

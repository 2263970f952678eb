"""Owns the summary policy: a summary under the headings that were asked for, made of quotations from the request.

It sees the request alone: the headings and the length are read from the instruction itself. It understands nothing, so
it quotes, newest first where room is short, and says that it is a rehearsal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from deploy.rehearsal.loose import Json
from deploy.rehearsal.policies.lines import AMOUNT, DATE, RARE, short
from deploy.rehearsal.policies.view import PATHS, texts_of
from deploy.rehearsal.reply import Reply

ASKED: Final = re.compile(r"^\[[^\]\n]*\bsummary of the conversation\]", re.IGNORECASE)
HEADING: Final = re.compile(r"^## (.+?)\s*$", re.MULTILINE)
WORDS: Final = re.compile(r"(?i)at most (\d+) words")
NOTE: Final = "Rehearsal: quoted by the local stand-in model from what the request shows; it understands none of it."
BOUND: Final = re.compile(
    r"(?i)\b(?:must(?: not)?|never|always|only|do not|don't|no more than|at most|without|forbidden)\b"
)
CHOSEN: Final = re.compile(r"(?i)\b(?:decid\w+|we will|let's|agreed|instead of|rejected|chose\w*|settled on)\b")
LEFT: Final = re.compile(r"(?i)\b(?:todo|to-do|open|unfinished|pending|later|not yet|remaining|next)\b|\?\s*$|- \[ \]")
STATED: Final = re.compile(r"^[^.!?]{2,80}?\s*(?:[:=]|\bis\b|\bare\b|是|は)\s*\S")
SAID: Final = re.compile(r"\b(?:is|are|was|will be)\b|是|は")
MARKS: Final = re.compile(r"[{}\[\]\"|;<>=_/]")
SENTENCE: Final = re.compile("(?<=[.!?\u3002\uff01\uff1f])\\s+|\\n+")
FIRST_DENSE: Final = 0x2E80
LONG: Final = 220
PLAIN: Final = 30
"""Sentences looked at of one long text, so that a log of a megabyte does not push out everything else."""


@dataclass(slots=True)
class _Seen:
    asked: list[str]
    said: list[str]
    returned: list[str]
    earlier: list[str]
    files: Counter[str]
    tools: Counter[str]
    failed: list[str]


def wanted(request: Json) -> str | None:
    """The instruction, where the newest words of the request ask for a summary under headings."""
    last: Json = request["messages"][-1]
    if last["role"] != "user":
        return None
    found = list(texts_of(last["content"]))
    return found[-1] if found and ASKED.match(found[-1]) and HEADING.search(found[-1]) else None


def reply(request: Json, instruction: str) -> Reply:
    """A summary under the headings that were asked for, within the number of words that was told. What the others leave
    of their room is for facts."""
    headings = HEADING.findall(instruction)
    limit = WORDS.search(instruction)
    words = float(limit[1]) if limit else 600.0
    seen = _look(request, instruction)
    left = max(1.0, words - len(NOTE.split()) - sum(1 + len(heading.split()) for heading in headings))
    share = left / (len(headings) + 1)
    parts: dict[str, str] = {}
    for heading in sorted(headings, key=_is_facts):
        room = left if _is_facts(heading) else share
        body, used = _filled(_of(heading, seen), room)
        parts[heading] = f"## {heading}\n{body}"
        left -= used
    made = [parts[heading] for heading in headings]
    # The note is of the whole: behind the last section it would be one of the things to remember.
    return Reply(text="\n".join([*made[:1], "", NOTE, "", *made[1:]]))


def _is_facts(heading: str) -> bool:
    return "fact" in heading.casefold()


def _look(request: Json, instruction: str) -> _Seen:
    seen = _Seen([], [], [], [], Counter(), Counter(), [])
    for message in request["messages"]:
        content: Any = message["content"]
        for text in texts_of(content):
            if text != instruction:
                (seen.said if message["role"] == "assistant" else _heap(seen, text)).append(text)
        for block in () if isinstance(content, str) else content:
            _block(seen, block)
    return seen


def _heap(seen: _Seen, text: str) -> list[str]:
    """An earlier summary is told by its headings."""
    return seen.earlier if len(HEADING.findall(text)) > 2 else seen.asked


def _block(seen: _Seen, block: Json) -> None:
    if block["type"] == "tool_use":
        seen.tools[str(block["name"])] += 1
        given: Json = block["input"]
        seen.files.update(str(given[name]) for name in PATHS if isinstance(given.get(name), str))
    elif block["type"] == "tool_result":
        text = "\n".join(texts_of(block.get("content") or ""))
        (seen.failed if block.get("is_error") else seen.returned).append(text)


def _of(heading: str, seen: _Seen) -> Iterator[str]:
    """Lines for one heading, the most wanted first; by what the heading says, in any order of headings."""
    name = heading.casefold()
    yield from _before(heading, seen)
    asked, said = _sentences(reversed(seen.asked)), _sentences(reversed(seen.said))
    if "task" in name:
        yield from (f"first asked: “{short(text, 600)}”" for text in seen.asked[:1])
        yield from (f"asked: “{short(text, 400)}”" for text in reversed(seen.asked[1:]))
    elif "constraint" in name:
        yield from (line for line in asked if BOUND.search(line))
    elif "decision" in name:
        yield from (line for line in (*asked, *said) if CHOSEN.search(line))
    elif "state" in name:
        yield from (f"last said: “{short(text, 400)}”" for text in list(reversed(seen.said))[:3])
    elif "file" in name:
        yield from (f"`{path}` ({count} calls)" for path, count in seen.files.most_common())
    elif "done" in name:
        yield from (f"{tool}: {count} calls" for tool, count in seen.tools.most_common())
        yield from (f"failed: “{short(text)}”" for text in reversed(seen.failed))
    elif "open" in name:
        yield from (line for line in (*said, *asked) if LEFT.search(line))
    elif _is_facts(heading):
        yield from _facts(seen)


def _before(heading: str, seen: _Seen) -> Iterator[str]:
    """What an earlier summary said under the same heading."""
    for text in seen.earlier:
        pieces = re.split(r"^## (.+?)\s*$", text, flags=re.MULTILINE)
        for title, body in zip(pieces[1::2], pieces[2::2], strict=False):
            if title == heading:
                yield from (line.removeprefix("- ") for line in body.splitlines() if line.startswith("- "))


def _facts(seen: _Seen) -> list[str]:
    """Statements with a rare name, a date or an amount in them: “x is y” in words before “label: value”, and both
    before records of a machine."""
    lines = [*_sentences(seen.asked), *_sentences(seen.returned), *_sentences(seen.said)]
    common = Counter(word for line in lines for word in RARE.findall(line))
    scored: list[tuple[float, int, str]] = []
    for at, line in enumerate(lines):
        rare = sum(1.0 / common[word] for word in RARE.findall(line))
        points = 3.0 * min(rare, 1.0) + bool(DATE.search(line)) + bool(AMOUNT.search(line))
        if STATED.match(line) and points:
            worth = points + 2.0 * bool(SAID.search(line)) - 0.5 * len(MARKS.findall(line))
            scored.append((-worth, at, line))
    return [line for _, _, line in sorted(scored)]


def _sentences(texts: Iterable[str]) -> list[str]:
    """Each sentence once; of a text of many lines those that state something come first."""
    found: dict[str, None] = {}
    for text in texts:
        lines = [line.strip() for line in SENTENCE.split(text) if line.strip()]
        stated = [line for line in lines if STATED.match(line) and RARE.search(line)]
        for line in (*stated[:PLAIN], *lines[:PLAIN]):
            if len(line) <= LONG:
                found.setdefault(line)
    return list(found)


def _filled(lines: Iterable[str], room: float) -> tuple[str, float]:
    """Lines until the room is used, and how much they took; of scripts without spaces two characters are a word."""
    kept: dict[str, None] = {}
    used = 0.0
    for line in lines:
        if line in kept:
            continue
        size = 1 + max(len(line.split()), len(line) / 5, sum(ord(sign) > FIRST_DENSE for sign in line) / 2)
        if used + size > room:
            break
        used += size
        kept[line] = None
    return "\n".join(f"- {line}" for line in kept) or "none", used

"""Owns the repair of a transcript before it is sent. Pure: messages in; messages a provider accepts, and changes, out.

Invariant: the result is well formed (`wellformed.grown`), a second repair changes nothing, and a healthy transcript
comes back as the very object that was given. What is stored is never touched; the same rows give the same repair, also
as the transcript grows behind them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from shared.request import blocks, canonical
from shared.request.assembled import EPHEMERAL, Message, Request, with_messages
from shared.request.wellformed import Known, grown, visible


class RepairKind(StrEnum):
    UNREADABLE_BLOCK = "unreadable_block"  # not a JSON object with a type: left out
    MISPLACED_BLOCK = "misplaced_block"  # a kind that its role may not carry: left out
    BLANK_TEXT = "blank_text"  # left out
    BLANK_RESULT = "blank_result"  # its text replaced by "(no output)"
    EMPTY_MESSAGE = "empty_message"  # left out
    UNKNOWN_ROLE = "unknown_role"  # left out
    MERGED = "merged"  # two messages of one role in a row became one
    DOUBLE_ID = "double_id"  # a call whose id stood before got another, and so did its result
    ORPHAN_RESULT = "orphan_result"  # answers no call of the message before: left out
    DOUBLE_RESULT = "double_result"  # a second answer to one call: left out
    MISSING_RESULT = "missing_result"  # a call without an answer got one that says so
    RESULTS_FIRST = "results_first"  # results moved before the other blocks of their message
    TRAILING_REASONING = "trailing_reasoning"  # an assistant message may not end with reasoning: left out
    FIRST_ROLE = "first_role"  # a user message was put in front
    LAST_ROLE = "last_role"  # a user message was put behind


@dataclass(frozen=True, slots=True)
class Repair:
    """One change; `message_id` is the last row of the message concerned, `detail` the call or the kind of block."""

    kind: RepairKind
    message_id: int
    detail: str = ""


UNKNOWN_OUTCOME = (
    "No result of this call was recorded: it was cancelled, or its worker was lost. "
    "It may have happened. Check before repeating it."
)
BEGINS = "(The conversation before this point is not shown.)"
GOES_ON = "(Go on.)"

_SEALED = frozenset({"thinking", "redacted_thinking", "sealed"})
_ID = re.compile(r'"id"\s*:\s*"((?:[^"\\]|\\.)*)"')
_RESULT_ID = re.compile(r'"tool_use_id"\s*:\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class _Item:
    """One block: its text, its kind, and the call that it makes or answers."""

    text: str
    kind: str
    call: str = ""


@dataclass(frozen=True, slots=True)
class _Turn:
    role: str
    items: tuple[_Item, ...]
    last_id: int


def mend(request: Request, known: Known | None = None) -> tuple[Request, Known, tuple[Repair, ...]]:
    """The request as it may be sent, what to pass as `known` with the next one of this session, and what was changed.

    Costs what is new since `known` where the request was extended from the one before; else the whole transcript.
    """
    judged = Known() if known is None or request.base is None else known
    if grown(judged, request.pieces):
        return request, judged, ()
    messages, repairs = repair(request.messages)
    if not repairs:
        return request, Known(), ()
    return with_messages(request, messages), Known(), repairs


def repair(messages: Sequence[Message]) -> tuple[Sequence[Message], tuple[Repair, ...]]:
    """Messages that a provider accepts, and what was changed to get there."""
    made: list[Repair] = []
    turns = _merged(_readable(messages, made), made)
    turns = _unique_ids(turns, made)
    turns = _paired(turns, made)
    turns = _ends(turns, made)
    if not made:
        return messages, ()
    return tuple(Message(turn.role, tuple(item.text for item in turn.items), turn.last_id) for turn in turns), tuple(
        made
    )


def _readable(messages: Iterable[Message], made: list[Repair]) -> list[_Turn]:
    """Only roles and blocks that may be sent."""
    turns: list[_Turn] = []
    for message in messages:
        if message.role not in ("user", "assistant"):
            made.append(Repair(RepairKind.UNKNOWN_ROLE, message.last_id, message.role))
            continue
        items = [item for block in message.blocks for item in _item(block, message, made)]
        if message.role == "assistant":
            while items and items[-1].kind in _SEALED:
                made.append(Repair(RepairKind.TRAILING_REASONING, message.last_id, items.pop().kind))
        turns.append(_Turn(message.role, tuple(items), message.last_id))
    return turns


def _item(block: str, message: Message, made: list[Repair]) -> Iterable[_Item]:
    try:
        value = blocks.parse(block)
    except ValueError:
        value = {}
    kind = value.get("type")
    if not isinstance(kind, str):
        made.append(Repair(RepairKind.UNREADABLE_BLOCK, message.last_id))
        return
    call = value.get("id" if kind == "tool_use" else "tool_use_id")
    item = _Item(block, kind, call if isinstance(call, str) else "")
    if not _fits(kind, message.role):
        made.append(Repair(RepairKind.MISPLACED_BLOCK, message.last_id, kind))
        return
    if kind == "text":
        text = value.get("text")
        if not isinstance(text, str) or not text.strip():
            made.append(Repair(RepairKind.BLANK_TEXT, message.last_id))
            return
    if kind == "tool_result" and not visible(value.get("content")):
        made.append(Repair(RepairKind.BLANK_RESULT, message.last_id, item.call))
        item = replace(item, text=blocks.tool_result(item.call, "", is_error=value.get("is_error") is True))
    yield item


def _fits(kind: str, role: str) -> bool:
    if role == "assistant":
        return kind in ("text", "tool_use") or kind in _SEALED
    return kind != "tool_use" and kind not in _SEALED


def _merged(turns: Iterable[_Turn], made: list[Repair]) -> list[_Turn]:
    """No empty message, and roles that alternate."""
    kept: list[_Turn] = []
    for turn in turns:
        if not turn.items:
            made.append(Repair(RepairKind.EMPTY_MESSAGE, turn.last_id, turn.role))
        elif kept and kept[-1].role == turn.role:
            made.append(Repair(RepairKind.MERGED, turn.last_id, turn.role))
            kept[-1] = replace(turn, items=kept[-1].items + turn.items)
        else:
            kept.append(turn)
    return kept


def _unique_ids(turns: list[_Turn], made: list[Repair]) -> list[_Turn]:
    """Each call its own id. Results follow: of one id in one message, the nth result belongs to the nth call."""
    seen: set[str] = set()
    renamed: dict[str, list[str]] = {}
    out: list[_Turn] = []
    for turn in turns:
        if turn.role == "user":
            out.append(replace(turn, items=_follow(turn.items, renamed)) if renamed else turn)
            renamed = {}
            continue
        items: list[_Item] = []
        renamed = {}
        changed = False
        for item in turn.items:
            new = item
            if item.kind == "tool_use":
                if item.call in seen or not item.call:
                    new = _with_id(item, _free(item.call, seen))
                    made.append(Repair(RepairKind.DOUBLE_ID, turn.last_id, item.call))
                    changed = True
                seen.add(new.call)
                renamed.setdefault(item.call, []).append(new.call)
            items.append(new)
        if not changed:
            renamed = {}
        out.append(replace(turn, items=tuple(items)) if changed else turn)
    return out


def _follow(items: tuple[_Item, ...], renamed: dict[str, list[str]]) -> tuple[_Item, ...]:
    nth: Counter[str] = Counter()
    out: list[_Item] = []
    for item in items:
        calls = renamed.get(item.call, []) if item.kind == "tool_result" else []
        at = nth[item.call]
        nth[item.call] += 1
        out.append(_with_id(item, calls[at]) if at < len(calls) and calls[at] != item.call else item)
    return tuple(out)


def _free(call: str, taken: set[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", call)[:48] or "toolu"
    return next(name for nth in range(2, len(taken) + 3) if (name := f"{stem}_{nth}") not in taken)


def _with_id(item: _Item, new: str) -> _Item:
    """The block with its id replaced in its own text, so that no other byte of it changes."""
    pattern, key = (_ID, "id") if item.kind == "tool_use" else (_RESULT_ID, "tool_use_id")
    found = pattern.search(item.text)
    text = f'{item.text[: found.start()]}"{key}":"{new}"{item.text[found.end() :]}' if found else ""
    try:
        right = blocks.parse(text).get(key) == new
    except ValueError:
        right = False
    if not right:  # a block that someone else wrote, with another key of that name before
        text = canonical.dump({**blocks.parse(item.text), key: new})
    return replace(item, text=text, call=new)


def _paired(turns: list[_Turn], made: list[Repair]) -> list[_Turn]:
    """Every call answered once, first thing in the next user message; nothing answered that was not asked."""
    out: list[_Turn] = []
    open_calls: list[str] = []
    for turn in turns:
        if turn.role == "assistant":
            if open_calls and out:
                out.append(_Turn("user", tuple(_missing(open_calls, out[-1].last_id, made)), EPHEMERAL))
            if out and out[-1].role == "assistant":  # what stood between them was nothing but orphans
                made.append(Repair(RepairKind.MERGED, turn.last_id, turn.role))
                out[-1] = replace(turn, items=out[-1].items + turn.items)
            else:
                out.append(turn)
            open_calls = [item.call for item in turn.items if item.kind == "tool_use"]
            continue
        answered = _answered(turn, open_calls, made)
        open_calls = []
        if answered.items:
            out.append(answered)
        else:
            made.append(Repair(RepairKind.EMPTY_MESSAGE, turn.last_id, turn.role))
    if open_calls:
        out.append(_Turn("user", tuple(_missing(open_calls, out[-1].last_id, made)), EPHEMERAL))
    return out


def _answered(turn: _Turn, open_calls: list[str], made: list[Repair]) -> _Turn:
    waiting = dict.fromkeys(open_calls)
    results: list[_Item] = []
    others: list[_Item] = []
    late = False
    for item in turn.items:
        if item.kind != "tool_result":
            others.append(item)
        elif item.call in waiting:
            del waiting[item.call]
            late = late or bool(others)
            results.append(item)
        else:
            kind = RepairKind.DOUBLE_RESULT if item.call in open_calls else RepairKind.ORPHAN_RESULT
            made.append(Repair(kind, turn.last_id, item.call))
    if late:
        made.append(Repair(RepairKind.RESULTS_FIRST, turn.last_id))
    results.extend(_missing(waiting, turn.last_id, made))
    return replace(turn, items=(*results, *others))


def _missing(calls: Iterable[str], message_id: int, made: list[Repair]) -> list[_Item]:
    items: list[_Item] = []
    for call in calls:
        made.append(Repair(RepairKind.MISSING_RESULT, message_id, call))
        items.append(_Item(blocks.tool_result(call, UNKNOWN_OUTCOME, is_error=True), "tool_result", call))
    return items


def _ends(turns: list[_Turn], made: list[Repair]) -> list[_Turn]:
    """Begins and ends with the user: newer models take no prefill."""
    if not turns or turns[0].role != "user":
        made.append(Repair(RepairKind.FIRST_ROLE, turns[0].last_id if turns else EPHEMERAL))
        turns = [_Turn("user", (_Item(blocks.text(BEGINS), "text"),), EPHEMERAL), *turns]
    if turns[-1].role != "user":
        made.append(Repair(RepairKind.LAST_ROLE, turns[-1].last_id))
        turns = [*turns, _Turn("user", (_Item(blocks.text(GOES_ON), "text"),), EPHEMERAL)]
    return turns

"""The pure function (prefix, messages, edits) → what the model sees. Inside an epoch each result extends the one
before byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shared.request import assembled, blocks
from shared.request import edits as edit_rules
from shared.request.assembled import Message, Piece, Request, with_messages, with_tail
from shared.request.edits import EditRow, Past, Standing

__all__ = [
    "EditRow",
    "Message",
    "MessageRow",
    "Piece",
    "Prefix",
    "Request",
    "extend",
    "project",
    "renumbered",
    "stable_is_proved",
    "with_messages",
    "with_tail",
]


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message as stored. `content` is the text of an array of blocks, `sent` the array that went out where it
    differs, `blocks` signed reasoning (see blocks.reasoning), `stable_prefix_len` the characters of a scaffold at
    the start of the first text."""

    id: int
    turn: str
    step: int
    ordinal: int
    author: str
    role: str
    content: str
    sent: str | None = None
    blocks: str | None = None
    stable_prefix_len: int | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix as stored: `system_text` the array of system blocks, one a tier that is not empty; lengths in
    characters of text."""

    digest: str
    system_text: str
    stable_length: int
    context_length: int
    tools_text: str


def project(
    prefix: Prefix,
    messages: Iterable[MessageRow],
    edits: Iterable[EditRow] = (),
    *,
    without_reasoning: bool = False,
    without_tools: bool = False,
) -> Request:
    """The request that these rows make. Raises ValueError when the edits name another prefix than the one given, or
    when a stored text is not what its column holds."""
    past = edit_rules.apply(edits)
    if past.prefix is not None and past.prefix != prefix.digest:
        raise ValueError(f"prefix {past.prefix} is in force, {prefix.digest} was given")
    floor = assembled.begin(
        "" if without_tools or prefix.tools_text == "[]" else prefix.tools_text,
        prefix.system_text,
        stable_proved=stable_is_proved(prefix),
        with_reasoning=not without_reasoning,
        newest=past.newest,
    )
    rows = sorted(messages, key=lambda row: row.id)
    pieces = _with_summaries(rows, past, with_reasoning=not without_reasoning)
    return replace(assembled.append(floor, pieces, rows[-1].id if rows else 0), base=None)


def extend(request: Request, messages: Iterable[MessageRow]) -> Request:
    """The request with rows that came after it, at the price of those rows alone. The caller vouches that no edit
    came since. Raises ValueError when a row is not newer than every row and edit that the request knows."""
    rows = sorted(messages, key=lambda row: row.id)
    if not rows:
        return request
    if rows[0].id <= request.newest:
        raise ValueError(f"message {rows[0].id} is not newer than {request.newest}: project again")
    pieces = [_piece(row, edit_rules.NOTHING, with_reasoning=request.with_reasoning) for row in rows]
    return assembled.append(request, pieces, rows[-1].id)


def renumbered(
    base: Request, grown: Request, drafted: Sequence[MessageRow], written: Sequence[MessageRow]
) -> Request | None:
    """What `extend` makes of `base` and the written rows, given what it made of their draft (`grown`, under ids that
    only stood for "after everything"): equal rows give equal pieces, so that nothing but ids is new.

    None where a row is not, to the character, the one that was drafted, or does not stand where it stood.
    """
    ids = {draft.id: row.id for draft, row in zip(drafted, written, strict=False)}
    before = base.newest
    for draft, row in zip(drafted, written, strict=False):
        if row.id <= before or replace(row, id=draft.id) != draft:
            return None
        before = row.id
    if len(drafted) != len(written):
        return None
    kept = len(base.pieces)
    pieces = (*grown.pieces[:kept], *(replace(piece, id=ids[piece.id]) for piece in grown.pieces[kept:]))
    return replace(grown, pieces=pieces, newest=before)


def stable_is_proved(prefix: Prefix) -> bool:
    """Whether the first system block is the stable tier, to the character. If not, the bytes go out untouched all
    the same and only the breakpoint behind them is given up."""
    if prefix.stable_length <= 0:
        return False
    system = blocks.split(prefix.system_text) if prefix.system_text else ()
    return bool(system) and len(blocks.text_of(system[0])) == prefix.stable_length


def _with_summaries(rows: Sequence[MessageRow], past: Past, *, with_reasoning: bool) -> list[Piece]:
    """Live rows in order, each summary where the range that it stands for began."""
    pieces: list[Piece] = []
    waiting = list(past.summaries)
    for row in rows:
        while waiting and waiting[0].first <= row.id:
            pieces.append(_summary(waiting.pop(0)))
        if past.standing(row.id) is Standing.LIVE:
            pieces.append(_piece(row, past, with_reasoning=with_reasoning))
    pieces.extend(_summary(summary) for summary in waiting)
    return pieces


def _summary(summary: edit_rules.Summary) -> Piece:
    return Piece(summary.id, "user", (blocks.text(summary.text),))


def _piece(row: MessageRow, past: Past, *, with_reasoning: bool) -> Piece:
    """One row's blocks as they go out: stubs in place, the scaffold split from its tail, signed reasoning back at
    its index."""
    if row.role not in assembled.ROLES:
        raise ValueError(f"message {row.id} has the role {row.role!r}, which is not one of the wire")
    stored = blocks.split(row.content if row.sent is None else row.sent)
    content = _stubbed(row.id, stored, past) if past.stubs else stored
    reasoning = blocks.split_reasoning(row.blocks) if row.blocks and with_reasoning else ()
    if reasoning and past.keeps_reasoning(row.id):
        content = blocks.splice(content, reasoning)
    if row.stable_prefix_len and not any(message == row.id for message, _ in past.stubs):
        content = _scaffold_split(content, row.stable_prefix_len)
    return Piece(row.id, row.role, content)


def _stubbed(message: int, content: tuple[str, ...], past: Past) -> tuple[str, ...]:
    lines = ((block, past.stubs.get((message, index))) for index, block in enumerate(content))
    return tuple(block if line is None else blocks.stub(block, line) for block, line in lines)


def _scaffold_split(content: tuple[str, ...], length: int) -> tuple[str, ...]:
    """The first text block as two, cut at the stored length. Left whole where the length does not fit it or a half
    would be blank, which the provider refuses."""
    index = next((i for i, block in enumerate(content) if blocks.kind(block) == "text"), None)
    if index is None:
        return content
    whole = blocks.text_of(content[index])
    scaffold, tail = whole[:length], whole[length:]
    if length < 0 or not scaffold.strip() or not tail.strip():
        return content
    return (*content[:index], blocks.text(scaffold), blocks.text(tail), *content[index + 1 :])

"""What edits make of a transcript: which messages stand, which summaries stand for which, which blocks are stubs, whose
reasoning is bound to a lost prefix.

Ids of messages and edits come from one sequence, so `row.id < edit.id` says that the message was there when the edit
was made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from shared.values import EditKind

_Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EditRow:
    """An edit as stored. `summary` and `rewind` name messages first..last (both included); `restore` names in `first`
    the rewind that it undoes; `stub` names the message in `first` and the index in its stored content in `block`;
    `prefix` names a digest."""

    id: int
    kind: str
    first: int | None = None
    last: int | None = None
    block: int | None = None
    text: str | None = None
    prefix: str | None = None
    kept: Sequence[int] | None = None


class Standing(Enum):
    LIVE = "live"  # the model sees it
    COVERED = "covered"  # a summary stands for it; still searchable
    REWOUND = "rewound"  # taken back; not searchable


@dataclass(frozen=True, slots=True)
class Summary:
    id: int
    first: int
    last: int
    text: str
    kept: tuple[int, ...] = ()

    @property
    def covers(self) -> tuple[_Range, ...]:
        """The ids that it stands for, without those that it keeps."""
        pieces: list[_Range] = [(self.first, self.last)]
        for one in self.kept:
            pieces = [rest for piece in pieces for rest in _without(piece, one, one)]
        return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Past:
    """The effect of all edits together; `prefix` is the digest in force, or None when no edit names one; `rewinds` are
    those in force, oldest first."""

    rewound: tuple[_Range, ...]
    summaries: tuple[Summary, ...]
    stubs: dict[tuple[int, int], str]
    prefix: str | None
    newest: int
    covered: tuple[_Range, ...]
    edit_ids: tuple[int, ...]
    lost_from: tuple[int, ...]
    rewinds: tuple[int, ...] = ()

    def standing(self, message: int) -> Standing:
        if self.rewound and _within(message, self.rewound):
            return Standing.REWOUND
        return Standing.COVERED if self.covered and _within(message, self.covered) else Standing.LIVE

    def live(self, upto: int) -> tuple[_Range, ...]:
        """The ids up to this one that the model may see as they are: what neither a summary nor a rewind has taken."""
        pieces: list[_Range] = [(0, upto)]
        for first, last in (*self.rewound, *self.covered):
            pieces = [rest for piece in pieces for rest in _without(piece, first, last)]
        return tuple(pieces)

    def keeps_reasoning(self, message: int) -> bool:
        """False when an edit made after the message changed something at or before it: the signature is bound to
        what is gone."""
        later = bisect_right(self.edit_ids, message)
        return later == len(self.edit_ids) or message < self.lost_from[later]


NOTHING = Past((), (), {}, None, 0, (), (), ())


@dataclass(slots=True)
class _Rewind:
    id: int
    first: int
    last: int
    restored: int | None = None  # by which edit

    def touches(self, summary: Summary) -> bool:
        return summary.last >= self.first and summary.first <= self.last


def apply(edits: Iterable[EditRow]) -> Past:
    """Fold the edits in order of id. A rewind voids each summary that was made after its first message, so what was
    before the cut stands again as it was. A restore undoes one rewind and no other, and with it the voiding; but a
    summary that was made while the range was gone cannot speak for it, so it is void from the restore on."""
    ordered = sorted(edits, key=lambda edit: edit.id)
    if not ordered:
        return NOTHING
    rewinds: dict[int, _Rewind] = {}
    summaries: list[Summary] = []
    stubs: dict[tuple[int, int], str] = {}
    prefix: str | None = None
    changes: list[_Range] = []  # id of the edit, first position that it changes
    for edit in ordered:
        kind = EditKind(edit.kind)
        match kind:
            case EditKind.PREFIX:
                if prefix is not None:
                    changes.append((edit.id, 0))
                prefix = edit.prefix
            case EditKind.STUB:
                first = _named(edit.first, edit)
                stubs[first, _named(edit.block, edit)] = edit.text or ""
                changes.append((edit.id, first))
            case EditKind.SUMMARY:
                first, last = _span(edit)
                summaries.append(Summary(edit.id, first, last, edit.text or "", tuple(edit.kept or ())))
                changes.append((edit.id, first))
            case EditKind.REWIND:
                # what a voided summary covered is older than that summary, so its reasoning is left out already
                rewinds[edit.id] = _Rewind(edit.id, *_span(edit))
                changes.append((edit.id, rewinds[edit.id].first))
            case EditKind.RESTORE:
                undone = rewinds.get(_named(edit.first, edit))
                if undone is not None and undone.restored is None:
                    undone.restored = edit.id
                    changes.append((edit.id, undone.first))
            case _:
                assert_never(kind)
    standing = _outermost([s for s in summaries if not any(_voids(rewind, s) for rewind in rewinds.values())])
    in_force = [rewind for rewind in rewinds.values() if rewind.restored is None]
    return Past(
        rewound=tuple(sorted((rewind.first, rewind.last) for rewind in in_force)),
        summaries=standing,
        stubs=stubs,
        prefix=prefix,
        newest=ordered[-1].id,
        covered=tuple(sorted(piece for s in standing for piece in s.covers)),
        edit_ids=tuple(edit_id for edit_id, _ in changes),
        lost_from=_suffix_minima([first for _, first in changes]),
        rewinds=tuple(rewind.id for rewind in in_force),
    )


def _voids(rewind: _Rewind, summary: Summary) -> bool:
    """A later rewind that is in force voids it where it was made when what is taken back was there: whether or not
    its range reaches past the cut, whoever wrote it had read on to the end. An earlier rewind does where it was undone
    after the summary was made. The view `message_state` says the same in SQL; a test compares the two."""
    if rewind.id > summary.id:
        return rewind.restored is None and rewind.first < summary.id
    return rewind.restored is not None and rewind.restored > summary.id and rewind.touches(summary)


def _outermost(summaries: Sequence[Summary]) -> tuple[Summary, ...]:
    """Without those that lie wholly inside a later one, in order of the place where they stand."""
    kept = [s for s in summaries if not any(o.id > s.id and o.first <= s.first and s.last <= o.last for o in summaries)]
    return tuple(sorted(kept, key=lambda s: (s.first, s.id)))


def _without(span: _Range, first: int, last: int) -> list[_Range]:
    start, end = span
    if last < start or first > end:
        return [span]
    return [piece for piece in ((start, first - 1), (last + 1, end)) if piece[0] <= piece[1]]


def _suffix_minima(values: Sequence[int]) -> tuple[int, ...]:
    minima: list[int] = []
    for value in reversed(values):
        minima.append(min(value, minima[-1]) if minima else value)
    return tuple(reversed(minima))


def _within(message: int, ranges: Iterable[_Range]) -> bool:
    return any(first <= message <= last for first, last in ranges)


def _span(edit: EditRow) -> _Range:
    return _named(edit.first, edit), _named(edit.last, edit)


def _named(value: int | None, edit: EditRow) -> int:
    if value is None:
        raise ValueError(f"edit {edit.id} of kind {edit.kind} does not say what it edits")
    return value

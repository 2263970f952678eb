"""What is remembered from one conversation to the next, as values: scopes, entries, and what a change makes of them.

Pure. A scope is `team`, a person's own (`me` in requests), or a person's profile, one text about themselves. It holds
entries in the order in which they came, bounded by characters. Nothing is ever cut to fit: what does not fit, or was
asked for in ignorance of what is there now, is refused and the text stays as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never, cast
from uuid import UUID

from shared import suspicion
from shared.errors import Refused
from shared.request import canonical
from shared.settings import Settings
from shared.text import clean_text

MOST_ENTRIES = 200
SUSPICIOUS = "memory_suspicious"
"""The code of what reads like an instruction."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Kind(StrEnum):
    TEAM = "team"
    PERSON = "person"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory. `owner` is the person; None for the team's."""

    kind: Kind
    owner: UUID | None = None

    @property
    def key(self) -> str:
        """Its name in the rows."""
        return self.kind if self.owner is None else f"{self.kind}:{self.owner}"

    @property
    def called(self) -> str:
        """As the model and a request call it."""
        return "me" if self.kind is Kind.PERSON else self.kind


TEAM = Scope(Kind.TEAM)


@dataclass(frozen=True, slots=True)
class Head:
    """A scope as it is: revision 0 and no entries where nothing was ever written."""

    scope: Scope
    revision: int
    entries: tuple[str, ...]


class Action(StrEnum):
    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Change:
    """What is asked for. `old` names an entry by its text or a part of it that no other has; `seen` is the revision
    that the asker knows, which everything but an addition must name; `entries` are the whole, for `set`."""

    action: Action
    text: str = ""
    old: str = ""
    seen: int | None = None
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changed:
    """What is there afterwards, and what was taken out and put in."""

    entries: tuple[str, ...]
    taken: str | None
    put: str | None


class MemoryChanged(Refused):
    """A rewrite by someone who does not know what is there now. `head` is what is."""

    code = "memory_changed"
    status = 409

    def __init__(self, head: Head, seen: int | None) -> None:
        knows = "names no revision" if seen is None else f"is made for revision {seen}"
        super().__init__(
            f"nothing was changed: this {knows}, and the {head.scope.called} memory is at revision {head.revision}: "
            "read what is there now and ask again with that revision"
        )
        self.head = head


def limit(settings: Settings, kind: Kind) -> int:
    """How many characters a scope may hold."""
    match kind:
        case Kind.TEAM:
            return settings.memory_team_chars
        case Kind.PERSON:
            return settings.memory_person_chars
        case Kind.PROFILE:
            return settings.profile_chars
        case _:
            assert_never(kind)


def size(entries: Sequence[str]) -> int:
    return sum(len(entry) for entry in entries)


def clean(text: str) -> str:
    """An entry as it is kept: no NUL, no half characters, no control characters but line ends and tabs, no blank
    edges."""
    return _CONTROL.sub("\ufffd", clean_text(text).replace("\r\n", "\n").replace("\r", "\n")).strip()


def apply(head: Head, change: Change, most: int) -> Changed | None:
    """What the change makes of the entries; None where they are so already. Raises MemoryChanged, and Refused
    `memory_entry_empty`, `memory_entry_unknown`, `memory_suspicious`, `memory_full`."""
    entries = list(head.entries)
    match change.action:
        case Action.ADD:
            put = _fit(change.text)
            if put in entries:
                return None
            changed = Changed((*entries, put), None, put)
        case Action.REPLACE:
            put = _fit(change.text)
            at = _found(head, change)
            changed = Changed((*entries[:at], put, *entries[at + 1 :]), entries[at], put)
        case Action.REMOVE:
            at = _found(head, change)
            changed = Changed((*entries[:at], *entries[at + 1 :]), entries[at], None)
        case Action.SET:
            changed = _whole(head, change)
        case _:
            assert_never(change.action)
    if changed.entries == head.entries:
        return None
    _bounded(head, changed.entries, most)
    for entry in set(changed.entries).difference(head.entries):
        _no_order(entry)
    return changed


def dump(entries: Sequence[str]) -> str:
    """The entries as a row holds them."""
    return canonical.dump(list(entries))


def load(text: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", json.loads(text)))


def _whole(head: Head, change: Change) -> Changed:
    """All entries at once. Who asks for what is there already is told so, whatever revision they knew: that is a
    request whose first answer was lost."""
    wanted = tuple(dict.fromkeys(text for entry in change.entries if (text := clean(entry))))
    if wanted != head.entries and change.seen != head.revision:
        raise MemoryChanged(head, change.seen)
    gone = [entry for entry in head.entries if entry not in set(wanted)]
    come = [entry for entry in wanted if entry not in set(head.entries)]
    return Changed(wanted, dump(gone) if gone else None, dump(come) if come else None)


def _fit(text: str) -> str:
    found = clean(text)
    if not found:
        raise Refused("an entry must hold some text that is not blank", code="memory_entry_empty", status=422)
    return found


def _no_order(entry: str) -> None:
    """Asked of what fits: how long a look at a text takes grows with the text."""
    why = suspicion.why(entry)
    if why is not None:
        raise Refused(
            f"not written: it reads like an instruction {why}, and memory tells what is so: put it in other words",
            code=SUSPICIOUS, status=422,
        )  # fmt: skip


def _found(head: Head, change: Change) -> int:
    if change.seen != head.revision:
        raise MemoryChanged(head, change.seen)
    old = clean(change.old)
    exact = [at for at, entry in enumerate(head.entries) if entry == old]
    near = exact or [at for at, entry in enumerate(head.entries) if old and old in entry]
    if len(near) != 1:
        many = f"{len(near)} entries hold" if near else "no entry holds"
        raise Refused(
            f"nothing was changed: {many} this old text; name one entry by a part that only it has",
            code="memory_entry_unknown", status=422,
        )  # fmt: skip
    return near[0]


def _bounded(head: Head, entries: Sequence[str], most: int) -> None:
    """What only shrinks always fits: a limit that was lowered must not hold what is there for ever."""
    now = size(entries)
    if now <= size(head.entries) and len(entries) <= len(head.entries):
        return
    if now > most:
        raise Refused(
            f"nothing was changed: it would hold {now:,} characters and may hold {most:,}: "
            "remove or shorten what is no longer needed first",
            code="memory_full", status=422,
        )  # fmt: skip
    if len(entries) > MOST_ENTRIES:
        raise Refused(
            f"nothing was changed: at most {MOST_ENTRIES} entries are kept: put several into one",
            code="memory_full", status=422,
        )  # fmt: skip

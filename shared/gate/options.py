"""The words of a program: its options, and what it works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

from shared.gate.shell.marks import STAR, UNKNOWN, certain, could_be


@dataclass(frozen=True, slots=True)
class Options:
    """`letters` are the short options, one by one; `names` the long ones without dashes; `values` what followed an
    option that takes a word; `operands` the rest. `unsure`: a word nobody knows may be an option."""

    letters: frozenset[str]
    names: frozenset[str]
    operands: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = field(default=())
    unsure: bool = False

    def has(self, letters: str = "", *names: str) -> bool:
        """One of these letters, or a long option that may be shortened to one of these names."""
        if self.letters & set(letters):
            return True
        return any(name.startswith(given) for given in self.names for name in names if len(given) > 1)

    def value(self, *options: str) -> str | None:
        return next((value for option, value in self.values if option in options), None)


def parse(words: Sequence[str], valued: str = "") -> Options:
    """`valued` are options that take the next word, with blanks between (`-o --output`)."""
    takes = frozenset(valued.split())
    letters, names, operands, values = set[str](), set[str](), list[str](), list[tuple[str, str]]()
    rest, unsure = list(words), False
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            names.add(name)
            if equals:
                values.append((f"--{name}", value))
            elif word in takes and rest:
                values.append((word, rest.pop(0)))
        elif word.startswith("-") and len(word) > 1:
            if word in takes and rest:
                values.append((word, rest.pop(0)))
            elif word[:2] in takes:
                values.append((word[:2], word[2:]))
            letters |= set(word[1:])
        else:
            unsure = unsure or word[0:1] in (UNKNOWN, STAR) or not word.strip(UNKNOWN)
            operands.append(word)
    return Options(frozenset(letters), frozenset(names), tuple(operands), tuple(values), unsure)


@cache
def names(text: str) -> frozenset[str]:
    """A set from words with blanks between."""
    return frozenset(text.split())


def is_program(program: str, known: str) -> bool:
    """Whether it may be one of these, by what is known of its name. Of one that is wholly unknown nothing is said."""
    if certain(program):
        return program in names(known) or program.casefold() in names(known)
    if not program.strip(UNKNOWN + STAR):
        return False
    return any(could_be(program, name) for name in names(known))


T = TypeVar("T")


class Programs(Generic[T]):
    """What is known by a program's name. Keys are names with blanks between."""

    def __init__(self, table: Mapping[str, T]) -> None:
        self._entries = tuple(table.items())
        self._by_name: dict[str, list[T]] = {}
        for known, entry in self._entries:
            for name in names(known):
                self._by_name.setdefault(name, []).append(entry)
        self.names = frozenset(self._by_name)

    def of(self, program: str) -> list[T]:
        """All that may be meant by this name, by what is known of it."""
        if certain(program):
            return self._by_name.get(program, self._by_name.get(program.casefold(), []))
        return [entry for known, entry in self._entries if is_program(program, known)]

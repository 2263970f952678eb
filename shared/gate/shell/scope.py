"""What a shell would know at a point of the line: variables, functions, where it stands, what it has written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tree_sitter import Node

from shared.gate.shell.marks import HOME, UNKNOWN

_GIVEN = {"HOME": HOME, "SHELL": "/bin/bash", "BASH": "/bin/bash", "PATH": f"/{UNKNOWN}", "IFS": " \t\n", "0": "bash"}


_MOST_CHARS = 10_000
_MOST_CONTENTS = 8


@dataclass(slots=True)
class Scope:
    """`variables` hold values with marks; a name that is missing was never set here, and may have come with the
    environment. `files` are what this line may have written, by path, shared by all its shells: each
    content that it may have, None where that is not known. `functions` have the
    bodies that each may have; those in `unsure` may also be none. `loose`: which argument is which is not known."""

    variables: dict[str, str] = field(default_factory=dict[str, str])
    arrays: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    functions: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    unsure: set[str] = field(default_factory=set[str])
    files: dict[str, list[str | None]] = field(default_factory=dict[str, list[str | None]])
    arguments: list[str] = field(default_factory=list[str])
    loose: bool = False
    exported: set[str] = field(default_factory=set[str])
    cwd: str = "."
    inside: tuple[str, ...] = ()

    def copy(self) -> Scope:
        return replace(
            self, variables=dict(self.variables), arrays={k: list(v) for k, v in self.arrays.items()},
            functions=dict(self.functions), arguments=list(self.arguments),
            exported=set(self.exported), unsure=set(self.unsure),
        )  # fmt: skip

    def handed_down(self, env: tuple[tuple[str, str], ...]) -> Scope:
        """What a shell of its own knows that is started here. What was not exported may still have come from outside:
        it is not known there."""
        kept = {name: value for name, value in self.variables.items() if name in self.exported}
        return Scope(variables=kept | dict(env), files=self.files, exported=set(self.exported), cwd=self.cwd)

    def value(self, name: str) -> str | None:
        """None: it was never set here."""
        if name in ("@", "*"):
            return UNKNOWN if self.loose else " ".join(self.arguments)
        if name.isdigit() and name != "0" and self.loose:
            return UNKNOWN
        if name.isdigit() and name != "0":
            index = int(name) - 1
            return self.arguments[index] if index < len(self.arguments) else ""
        if name == "PWD":
            return self.cwd
        if name in self.arrays:
            return self.arrays[name][0] if self.arrays[name] else ""
        return self.variables.get(name, _GIVEN.get(name))

    def write(self, path: str, text: str | None) -> None:
        """That may be what is in it from now on."""
        held = self.files.setdefault(path, [])
        if text not in held:
            held.append(text if len(held) < _MOST_CONTENTS else None)

    def content(self, path: str) -> str | None:
        """Of a file that this line wrote once; None of any other, and where it is not known."""
        held = self.files.get(path, [])
        return held[0] if len(held) == 1 else None

    def set(self, name: str, value: str) -> None:
        self.arrays.pop(name, None)
        self.variables[name] = value if len(value) <= _MOST_CHARS else UNKNOWN

    def merge(self, others: list[Scope]) -> None:
        """After branches of which nobody knows which one was taken: what they do not agree on is not known."""
        for name in {name for other in others for name in (*other.variables, *other.arrays)}:
            found = {(other.variables.get(name), tuple(other.arrays.get(name, ()))) for other in others}
            if len(found) > 1:
                self.set(name, UNKNOWN)
            else:
                first = others[0]
                if name in first.arrays:
                    self.arrays[name] = first.arrays[name]
                else:
                    self.set(name, first.variables[name])
        self._merge_functions(others)
        if len({(tuple(other.arguments), other.loose) for other in others}) == 1:
            self.arguments, self.loose = list(others[0].arguments), others[0].loose
        else:
            self.loose = True
        if len({other.cwd for other in others}) == 1:
            self.cwd = others[0].cwd
        else:
            self.cwd = UNKNOWN

    def _merge_functions(self, others: list[Scope]) -> None:
        for name in {name for other in others for name in other.functions}:
            bodies = [body for other in others for body in other.functions.get(name, [])]
            self.functions[name] = list(dict.fromkeys(bodies))
            if any(name not in other.functions or name in other.unsure for other in others):
                self.unsure.add(name)
